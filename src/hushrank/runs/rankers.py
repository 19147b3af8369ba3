"""Using what was learnt: a run's rankers, or an exported one, on any data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hushrank.data.load import load_dataset
from hushrank.data.trec import write_trec_run
from hushrank.files import Json
from hushrank.metrics.offline import VARIANTS, evaluate
from hushrank.personal.keys import PERSONAL_SEARCH
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.rankers.named import named_ranker, read_ranker, write_ranker
from hushrank.reports.summary import from_directory
from hushrank.runs.result import name_cell, read_rankers, spread
from hushrank.types import Array, Dataset, QuerySet


@dataclass(frozen=True, slots=True)
class Trained:
    """One trained ranker."""

    name: str  # user/fold/repeat of a run, or the file's name
    fold: int | None  # the fold it was trained on; None: unknown, use it on any
    ranker: LinearRanker | MlpRanker
    params: Array


def find_rankers(path: Path) -> tuple[list[Trained], Json]:
    """Every ranker of a run's directory, or the one of an exported file; and the data that they were trained with."""
    if not path.is_dir():
        ranker, params, origin = read_ranker(path)
        return [Trained(path.stem, origin.get("fold"), ranker, params)], dict(origin.get("data", {}))
    result = read_result(path)
    refuse_trees(path, result)
    recipe, data = result["recipe"], result["data"]
    kind = {"hidden": recipe["hidden"], "activation": recipe["activation"]}
    ranker = named_ranker(recipe["ranker"], n_features=data["n_features"], **kind)
    rankers = [Trained(name_cell(*key), key[1], ranker, params) for key, params in read_rankers(path).items()]
    return rankers, {**data, "source": recipe["data"]}


def read_result(run: Path) -> Json:
    """A finished run's JSON."""
    from_directory(run)  # refuses what is not a finished run
    result: Json = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return result


def refuse_trees(run: Path, result: Json) -> None:
    """A run keeps the parameters of its rankers, and trees have none; models that read logs are no rankers."""
    if result["recipe"]["recipe"] == PERSONAL_SEARCH:
        raise ValueError(
            f"{run} trained a model of personalised search, which needs each user's log: only its metrics can be used, "
            "in result.json and in report.html."
        )
    if result["recipe"]["recipe"] == "lambdamart":
        raise ValueError(
            f"{run} trained trees (lambdamart), which are not kept: only its metrics are there, in result.json and in "
            "report.html. For a ranker to use, run mse, ranking-svm, pdgd, fpdgd or foltr-es."
        )


def load_for(
    path: Path, *, data: str | Dataset | None, normalise: str | None, keep_document_ids: bool = False
) -> tuple[list[Trained], Dataset]:
    """The rankers, and the data named or else the data that they were trained with; normalised as they know it."""
    rankers, about = find_rankers(path)
    source = data or about.get("source")
    if source is None:
        raise ValueError(f"{path} does not say which data to use: add --data.")
    method = normalise or about.get("normalise")
    if isinstance(source, Dataset):
        dataset = source
    else:
        dataset = load_dataset(source, normalise=method, keep_document_ids=keep_document_ids)
    if dataset.name != about.get("name"):  # Why: on other data no query was trained on, so every fold may be used
        rankers = [replace(trained, fold=None) for trained in rankers]
    return rankers, dataset


def check_split(split: str) -> None:
    """Refuse what is no part of a fold."""
    if split not in ("train", "vali", "test"):
        raise ValueError(f"split is {split!r}, must be train, vali or test.")


def evaluate_on(rankers: list[Trained], dataset: Dataset, *, split: str = "test", fold: int | None = None) -> Json:
    """Each measure over the rankers: on its own fold of the data it was trained with, on every fold of other data."""
    rows: dict[str, list[Json]] = {}
    skipped, counted = 0, 0
    for trained, number, queries in pair_rankers(rankers, dataset, split=split, fold=fold):
        found = evaluate(queries, trained.ranker.score(trained.params, queries.features))
        skipped, counted = skipped + found["nDCG@10"].n_skipped, counted + found["nDCG@10"].n_queries
        for name, mean in found.items():
            rows.setdefault(name, []).append({"ranker": trained.name, "fold": number, "value": mean.value})
    return {
        "data": dataset.name,
        "normalise": dataset.normalise,
        "split": split,
        "n_queries": counted,
        "n_queries_skipped": skipped,
        "metrics": {name: {"variant": VARIANTS[name], **spread(values)} for name, values in rows.items()},
    }


def pair_rankers(
    rankers: list[Trained], dataset: Dataset, *, split: str, fold: int | None = None
) -> Iterator[tuple[Trained, int, QuerySet]]:
    """Which ranker is measured on which queries; `fold` asks for one fold whatever the ranker was trained on."""
    folds = {each.number: each for each in dataset.folds}
    for trained in rankers:
        if trained.ranker.n_features != dataset.n_features:
            raise ValueError(
                f"{trained.name} was trained on {trained.ranker.n_features} features, {dataset.name} has "
                f"{dataset.n_features}: they do not fit."
            )
        wanted = fold if fold is not None else trained.fold
        for number in folds if wanted is None else [wanted]:
            if number not in folds:
                raise ValueError(f"{dataset.name} has no fold {number}; it has {', '.join(map(str, folds))}.")
            yield trained, number, getattr(folds[number], split)


def choose_ranker(
    run: Path, result: Json, *, user: str | None, fold: int | None, repeat: int | None
) -> tuple[str, int, int, float]:
    """(user, fold, repeat, validation nDCG@10) of the best on validation that fits the wishes; never by test."""
    clicks = result["recipe"]["clicks"]
    by_user = {clicks: result["metrics"]} if isinstance(clicks, str) else result["metrics"]
    rows = [
        (name, row["fold"], row["repeat"], row["value"])
        for name, metrics in by_user.items()
        for row in metrics["vali/nDCG@10"]["values"]
        if user in (None, name) and fold in (None, row["fold"]) and repeat in (None, row["repeat"])
    ]
    if not rows:
        raise ValueError(
            f"{run} has no ranker for user={user}, fold={fold}, repeat={repeat}; it has users {', '.join(by_user)}."
        )
    return max(rows, key=lambda row: row[3])


def rank_for_trec(rankers: list[Trained], dataset: Dataset, path: Path, *, split: str, fold: int | None) -> None:
    """One ranker's order of one fold's split as a TREC run file."""
    pairs = list(pair_rankers(rankers, dataset, split=split, fold=fold))
    if len(rankers) != 1:
        raise ValueError(
            "a TREC run file holds one ranker's order, a run has many: export one, then evaluate the file."
        )
    if len(pairs) != 1:
        raise ValueError(f"a TREC run file holds one fold, {dataset.name} has {len(pairs)}: add --fold.")
    trained, _, queries = pairs[0]
    scores = trained.ranker.score(trained.params, queries.features)
    write_trec_run(path, queries, scores, tag=f"hushrank-{trained.name}")


def export_ranker(run: Path, path: Path, *, user: str | None, fold: int | None, repeat: int | None) -> Json:
    """Write one of the run's rankers; what it is."""
    result = read_result(run)
    refuse_trees(run, result)
    user, fold, repeat, quality = choose_ranker(run, result, user=user, fold=fold, repeat=repeat)
    recipe, params = result["recipe"], read_rankers(run)[user, fold, repeat]
    ranker = named_ranker(
        recipe["ranker"],
        n_features=result["data"]["n_features"],
        hidden=recipe["hidden"],
        activation=recipe["activation"],
    )
    origin = {
        "clicks": user,
        "fold": fold,
        "repeat": repeat,
        "vali/nDCG@10": quality,
        "recipe": recipe,
        "data": result["data"],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_ranker(path, ranker, params, origin=origin)
    return origin
