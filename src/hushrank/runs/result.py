"""What a run found: the JSON that scripts rely on, the curves, the rankers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from safetensors.numpy import load_file, save

from hushrank.clicks.table import TableUser
from hushrank.engine.checkpoint import LOOK
from hushrank.engine.inputs import cell_key
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Method, Setting
from hushrank.engine.simulate import CellResult
from hushrank.federation.cohort import count_lost
from hushrank.files import Json, write_bytes, write_text
from hushrank.metrics.max_rr import mean_expected_max_rr
from hushrank.metrics.ndcg import ndcg_variant
from hushrank.metrics.offline import evaluate
from hushrank.metrics.online import discounted_sum
from hushrank.recipes.disclosure import who_learns
from hushrank.recipes.guarantee import explain_guarantee
from hushrank.recipes.recipe import Recipe, as_json
from hushrank.runs.directory import FORMAT
from hushrank.types import Array, Fold, QuerySet

_CURVES = ("offline/nDCG@10", "vali/nDCG@10", "offline/MaxRR", "vali/MaxRR")  # first, in this order


def summarise(
    recipe: Recipe, setting: Setting, results: list[CellResult], *, device: str, spent: dict[str, float]
) -> Json:
    """The run's JSON, `metrics[name]` for one user and `metrics[user][name]` for a list of users."""
    by_user = {user: user_metrics(setting, [r for r in results if r.user == user]) for user in recipe.users}
    skipped = sum(count_skipped(setting, fold) for fold in range(len(setting.dataset.folds)))
    learning = who_learns(recipe, setting.method)
    return {
        "format": FORMAT,
        "recipe": as_json(recipe),
        "seed": recipe.seed,
        "device": device,
        **spent,
        "n_interactions": int(sum(int(r.searches.sum()) for r in results)),
        "metrics": by_user[recipe.clicks] if isinstance(recipe.clicks, str) else by_user,
        "data": {
            "name": setting.dataset.name,
            "normalise": setting.dataset.normalise,
            "fingerprint": setting.dataset.fingerprint,
            "n_features": setting.dataset.n_features,
            "n_test_queries": sum(fold.test.n_queries for fold in setting.dataset.folds),
            "n_queries_skipped": skipped,
        },
        "nDCG@10": f"{ndcg_variant(10)}; ties in the file's order; online: sum over rounds of .9995^(t - 1) nDCG",
        "bytes_per_client_round": 0 if recipe.is_central or recipe.is_offline else count_bytes(setting.method),
        "rounds_lost": count_lost_rounds(setting),
        "privacy": learning.promise,
        "who_learns_what": [{"who": who, "learns": learns} for who, learns in learning.lines],
        "guarantee": explain_guarantee(recipe, setting.method),
    }


def user_metrics(setting: Setting, results: list[CellResult]) -> Json:
    """Every metric of one user over folds and repeats."""
    rows: dict[str, list[Json]] = {}
    for result in results:
        for name, value in cell_metrics(setting, result).items():
            rows.setdefault(name, []).append({"fold": result.fold, "repeat": result.repeat, "value": value})
    return {name: spread(values) for name, values in rows.items()}


def cell_metrics(setting: Setting, result: CellResult) -> dict[str, float]:
    fold = next(fold for fold in setting.dataset.folds if fold.number == result.fold)
    found = evaluate(fold.test, score_all(setting, result, fold.test))
    others = {f"offline/{name}": mean.value for name, mean in found.items() if name != "nDCG@10"}
    online = {"online/nDCG@10": discounted_sum(result.online)} if len(result.online) else {}
    return {
        "offline/nDCG@10": float(result.test[-1]),
        "vali/nDCG@10": float(result.vali[-1]),
        **online,
        **others,
        **user_experience(setting, result, fold),
    }


def score_all(setting: Setting, result: CellResult, queries: QuerySet) -> Array:
    """[n_documents] by the last ranker."""
    if result.scorer is not None:
        return result.scorer(queries.features)
    return setting.method.ranker.score(result.params, queries.features)


def user_experience(setting: Setting, result: CellResult, fold: Fold) -> dict[str, float]:
    """Expected MaxRR of the person that the ranker was trained with; nothing for one without a click table."""
    user = dict(setting.users)[result.user]
    if not isinstance(user, TableUser):
        return {}
    table, k = user.as_table(setting.method.k), setting.method.k
    train = mean_expected_max_rr(fold.train, score_all(setting, result, fold.train), table, k=k)
    return {
        "offline/MaxRR": float(result.looks["offline/MaxRR"][-1]),
        "vali/MaxRR": float(result.looks["vali/MaxRR"][-1]),
        "train/MaxRR": train.value,
    }


def spread(values: list[Json]) -> Json:
    numbers = [row["value"] for row in values]
    return {"mean": fmean(numbers), "std": stdev(numbers) if len(numbers) > 1 else None, "values": values}


def count_skipped(setting: Setting, fold: int) -> int:
    """Test queries without a relevant document."""
    test = setting.dataset.folds[fold].test
    return int(sum(not test.grades[test.rows(query)].any() for query in range(test.n_queries)))


def count_bytes(method: Method) -> int:
    """What a client sends in a round: its message, or all messages of a secure sum."""
    message, n_clients = method.exchange.count_bytes(method.n_params), method.population.cohort_size
    return method.summation.count_bytes(message, n_clients=n_clients, n_params=method.n_params)


def count_lost_rounds(setting: Setting) -> int:
    """Over all trainings: rounds that would have carried less noise than promised, or opened too small a sum."""
    method = setting.method
    if method.quorum.least < 2:
        return 0
    keys = [
        cell_key(setting, Cell(0, fold, n))
        for fold in range(len(setting.dataset.folds))
        for n in range(setting.repeats)
    ]
    lost = sum(count_lost(method.population, method.quorum, key, setting.rounds) for key in keys)
    return len(setting.users) * lost


def write_curves(path: Path, results: list[CellResult]) -> None:
    """`metrics.jsonl`: one JSON object per line, user by user, fold by fold."""
    write_text(path, "".join(json.dumps(row) + "\n" for result in results for row in curve_rows(result)))


def curve_rows(result: CellResult) -> Iterator[Json]:
    """Offline quality at each look; online quality as the mean since the look before."""
    who = {"click": result.user, "fold": result.fold, "repeat": result.repeat}
    total = np.concatenate([[0], np.cumsum(result.searches)])
    before = 0
    known = [name for name in _CURVES if name in result.looks]
    names = [*known, *sorted(name for name in result.looks if name not in (*known, LOOK))]
    for look, round in enumerate(result.evaluated.tolist()):
        at = {**who, "round": round, "interactions": int(total[round])}
        for name in names:
            if np.isfinite(value := result.looks[name][look]):
                yield {**at, "name": name, "value": float(value)}
        if round > before:
            yield {**at, "name": "online/nDCG@10", "value": float(result.online[before:round].mean(dtype=np.float64))}
        before = round


def write_rankers(path: Path, results: list[CellResult]) -> None:
    """The last ranker of every cell, named user/fold/repeat."""
    write_bytes(path, save({name_cell(r.user, r.fold, r.repeat): np.ascontiguousarray(r.params) for r in results}))


def read_rankers(run: Path) -> dict[tuple[str, int, int], Array]:
    """{(user, fold, repeat): parameters} of a finished run."""
    path = run / "rankers.safetensors"
    if not path.is_file():
        raise ValueError(f"{run} holds no rankers: name the directory of a finished run.")
    found = {}
    for name, params in load_file(path).items():
        user, fold, repeat = name.rsplit("/", 2)
        found[user, int(fold), int(repeat)] = params
    return found


def name_cell(user: str, fold: int, repeat: int) -> str:
    return f"{user}/{fold}/{repeat}"
