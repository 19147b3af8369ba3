"""Using what was learnt: a run's rankers, or an exported one, on any data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushrank.data.load import load_dataset
from hushrank.data.trec import write_trec_run
from hushrank.experiments.result import name_cell, read_rankers, spread
from hushrank.experiments.rundir import read_recipe_file
from hushrank.metrics.offline import VARIANTS, evaluate
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.rankers.named import named_ranker, read_ranker, write_ranker
from hushrank.report.summary import from_directory
from hushrank.types import Array, Dataset, QuerySet


@dataclass(frozen=True, slots=True)
class Trained:
    """One trained ranker."""

    name: str  # user/fold/repeat of a run, or the file's name
    fold: int | None  # the fold it was trained on; None: unknown, use it on any
    ranker: LinearRanker | MlpRanker
    params: Array


def find_rankers(path: Path, *, n_features: int) -> list[Trained]:
    """Every ranker of a run's directory, or the one of an exported file."""
    if not path.is_dir():
        ranker, params, _ = read_ranker(path)
        return [Trained(path.stem, None, ranker, params)]
    recipe = read_recipe_file(path)
    if recipe is None:
        raise ValueError(f"{path} is neither a run nor an exported ranker: it holds no recipe.json.")
    ranker = named_ranker(recipe.ranker, n_features=n_features, hidden=recipe.hidden, activation=recipe.activation)
    return [Trained(name_cell(*key), key[1], ranker, params) for key, params in read_rankers(path).items()]


def data_of(path: Path) -> tuple[str, str | None]:
    """The data set and normalisation that a run was trained with."""
    recipe = read_recipe_file(path) if path.is_dir() else None
    if recipe is None:
        raise ValueError(f"{path} does not say which data to use: add --data.")
    return recipe.data, recipe.normalise


def evaluate_on(path: Path, dataset: Dataset, *, split: str = "test") -> dict[str, Any]:
    """Each measure over the rankers (each on its own fold's split) or, for one exported ranker, over the folds."""
    rows: dict[str, list[dict[str, Any]]] = {}
    skipped, counted = 0, 0
    for trained, number, queries in pair_rankers(path, dataset, split=split):
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


def pair_rankers(path: Path, dataset: Dataset, *, split: str) -> Iterator[tuple[Trained, int, QuerySet]]:
    """Which ranker is measured on which queries: never one that was trained on them when its fold is known."""
    folds = {fold.number: fold for fold in dataset.folds}
    for trained in find_rankers(path, n_features=dataset.n_features):
        if trained.ranker.n_features != dataset.n_features:
            raise ValueError(
                f"{path} was trained on {trained.ranker.n_features} features, {dataset.name} has {dataset.n_features}: "
                "they do not fit."
            )
        wanted = folds if trained.fold is None else {trained.fold: folds.get(trained.fold)}
        for number, fold in wanted.items():
            if fold is None:
                raise ValueError(
                    f"{trained.name} was trained on fold {number}, which {dataset.name} does not have. "
                    "Export it and evaluate the file."
                )
            yield trained, number, getattr(fold, split)


def choose_ranker(
    run: Path, result: dict[str, Any], *, user: str | None, fold: int | None, repeat: int | None
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


def load_for(path: Path, *, data: str | None, normalise: str | None, keep_document_ids: bool = False) -> Dataset:
    """The data named, or else the data that the run was trained with."""
    if data is None:
        data, trained_with = data_of(path)
        normalise = normalise or trained_with
    return load_dataset(data, normalise=normalise, keep_document_ids=keep_document_ids)


def rank_for_trec(path: Path, dataset: Dataset, *, split: str, fold: int, path_out: Path) -> None:
    """One exported ranker's order of a fold's split as a TREC run file."""
    if path.is_dir():
        raise ValueError(
            "a TREC run file holds one ranker's order, a run has many: hushrank export one, then evaluate the file."
        )
    for trained, number, queries in pair_rankers(path, dataset, split=split):
        if number == fold:
            scores = trained.ranker.score(trained.params, queries.features)
            write_trec_run(path_out, queries, scores, tag=f"hushrank-{trained.name}")
            return
    raise ValueError(f"{dataset.name} has no fold {fold}.")


def export_ranker(run: Path, path: Path, *, user: str | None, fold: int | None, repeat: int | None) -> dict[str, Any]:
    """Write one of the run's rankers; what it is."""
    from_directory(run)  # refuses what is not a finished run
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
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
    write_ranker(path, ranker, params, origin=origin)
    return origin
