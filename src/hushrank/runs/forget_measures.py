"""What forgetting reached and what it took, beside what a run's result says anyway."""

from __future__ import annotations

import re
from typing import NamedTuple

from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult
from hushrank.files import Json, JsonObject
from hushrank.metrics.distances import compare_rankings, cosine_similarity, relative_distance
from hushrank.metrics.ndcg import mean_ndcg
from hushrank.runs.kept import Cells
from hushrank.types import Array, QuerySet

_ODD = re.compile(r"[^A-Za-z0-9@/_.-]")
_LONGEST = 60  # characters of a figure's name


class Measured(NamedTuple):
    """The new rankers beside the old ones, and beside those that never met the leavers."""

    setting: Setting
    before: Cells
    retrained: Cells | None

    def compare(self, result: CellResult) -> dict[str, float]:
        """Of one training, all on test queries."""
        fold = next(fold for fold in self.setting.dataset.folds if fold.number == result.fold)
        cell = (result.user, result.fold, result.repeat)
        found = {"before/offline/nDCG@10": self.quality(fold.test, self.before[cell])}
        if self.retrained is None:
            return found
        other = self.retrained[cell]
        found["retrained/offline/nDCG@10"] = self.quality(fold.test, other)
        scores = [self.setting.method.ranker.score(params, fold.test.features) for params in (result.params, other)]
        lists = compare_rankings(fold.test, *scores)
        near = {"rbo": lists.rbo, "tau": lists.tau}
        if other.any():  # Why: a ranker that has learnt nothing has no direction and no length
            near |= {"l2": relative_distance(result.params, other), "cosine": cosine_similarity(result.params, other)}
        return found | {f"distance/{name}": value for name, value in near.items()}

    def quality(self, queries: QuerySet, params: Array) -> float:
        scores = self.setting.method.ranker.score(params, queries.features)
        return float(mean_ndcg(queries, scores, k=self.setting.method.k).value)


class Work(NamedTuple):
    """What trainings took, over all users, folds and repeats."""

    searches: int
    rounds: int  # of one training
    bytes: float  # sent by all clients
    seconds: float

    def plus(self, other: Work) -> Work:
        searches, rounds = self.searches + other.searches, self.rounds + other.rounds
        return Work(searches, rounds, self.bytes + other.bytes, self.seconds + other.seconds)


def count_work(setting: Setting, result: JsonObject) -> Work:
    """result: of a training with that setting. Bytes are of those who are drawn and there, on average."""
    population = setting.method.population
    messages = population.n_seats * population.n_present / population.n_clients * setting.rounds
    cells = len(setting.users) * len(setting.dataset.folds) * setting.repeats
    return Work(
        int(result["n_interactions"]),
        setting.rounds,
        result["bytes_per_client_round"] * messages * cells,
        float(result["wall_s"]),
    )


def describe_work(run: Work, new: Work, *, repeated: Work | None = None, retrained: Work | None = None) -> Json:
    """{"searches": {"run", "forgetting", "ratio"}, ...}: how many times as much the run took.

    repeated: of the run once more, which forgetting needed; it is a part of forgetting.
    """
    new, others = new if repeated is None else new.plus(repeated), {"repeated": repeated, "retrained": retrained}
    found = {}
    for name in Work._fields:
        before, after = getattr(run, name), getattr(new, name)
        both = {"run": before, "forgetting": after, "ratio": before / after if after else None}
        found[name] = {**both, **{of: getattr(work, name) for of, work in others.items() if work is not None}}
    return found


def list_figures(result: JsonObject) -> dict[str, float | int | bool | None]:
    """What a record says was measured: means over folds and repeats, by user where there are several; and the work."""
    metrics = result["metrics"]
    by_user = metrics if isinstance(result["recipe"]["clicks"], list) else {"": metrics}
    wanted = ("offline/nDCG@10", "before/offline/nDCG@10", "retrained/offline/nDCG@10")
    figures: dict[str, float | int | bool | None] = {
        name_figure(user, name): metric["mean"]
        for user, named in by_user.items()
        for name, metric in named.items()
        if name in wanted or name.startswith("distance/")
    }
    figures |= {f"{name}": each["forgetting"] for name, each in result["work"].items() if name != "seconds"}
    rounds = result["work"]["rounds"]
    figures |= {"run/rounds": rounds["run"], "rounds_lost": result["rounds_lost"]}
    if "repeated" in rounds:
        figures["repeated/rounds"] = rounds["repeated"]
    if result["privacy_spent"] is not None:
        figures |= {
            "run/epsilon": result["privacy_spent"]["run_epsilon"],
            "epsilon": result["privacy_spent"]["epsilon"],
        }
    return figures


def name_figure(user: str, name: str) -> str:
    """As a record takes it."""
    return _ODD.sub("-", f"{user}/{name}" if user else name)[-_LONGEST:].lstrip("@/_.-")
