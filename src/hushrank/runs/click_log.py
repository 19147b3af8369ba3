"""A click log to try replay with: simulated people search, and what they saw and clicked is written down.

A log is a run whose ranker never learns: impression i is of client i % n_clients in round 1 + i // n_clients, with the
draws that a run of the same seed makes in that round. So more impressions change none of the first ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushrank.clicks.named import named_user
from hushrank.data.clicklog import ClickLog, write_click_log
from hushrank.data.load import load_dataset
from hushrank.files import Json
from hushrank.learners.logged import log_propensities
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.named import read_ranker
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import Purpose, draw_below, draw_uniform, fold_in, seed_key, stream
from hushrank.types import Array, Dataset, QuerySet, User

_BLOCK = 256  # impressions whose draws are made together. Why: enough to be quick, small beside the features
_PURPOSES = (Purpose.QUERY, Purpose.SHOW, Purpose.CLICK, Purpose.STOP)


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Whose searches are logged, and which ranker they see."""

    data: str  # a synthetic set, a public set or a directory
    clicks: str = "navigational"
    n_impressions: int = 20_000
    n_clients: int = 100
    seed: int = 0  # of the searches; a generated data set is the one that `hushrank run` generates
    fold: int = 1  # its training queries are searched for
    ranker: Path | None = None  # an exported ranker; None: all lists are equally likely
    normalise: str | None = None  # None: as the ranker knows it, or as the catalogue says
    k: int = 10  # results on a page


def make_log(
    request: LogRequest,
    out: Path,
    *,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Json:
    """Simulate, write `out`, and say in numbers what it holds; `progress` hears the number of impressions made."""
    _check_request(request, out)
    dataset, scores = _load_scored(request, tell=tell)
    queries = dataset.folds[0].train
    user = named_user(request.clicks, n_grades=dataset.n_grades)
    key = stream(seed_key(request.seed), 0, request.fold)  # as the first repeat of a run
    log = simulate_log(queries, scores, user, request=request, key=key, progress=progress)
    write_click_log(out, log, queries)
    return _describe_log(log, request, dataset)


def simulate_log(
    queries: QuerySet,
    scores: Array,
    user: User,
    *,
    request: LogRequest,
    key: Array,
    progress: Callable[[int], None] | None = None,
) -> ClickLog:
    """What people saw and clicked; scores [n_documents] are those of the logging ranker."""
    parts: list[tuple[int, Array, Array, Array]] = []
    for query, ranking, is_clicked, propensities in _impressions(queries, scores, user, request, key):
        parts.append((query, ranking, is_clicked, propensities))
        if progress is not None and (len(parts) % _BLOCK == 0 or len(parts) == request.n_impressions):
            progress(len(parts))
    return ClickLog(
        clients=np.arange(request.n_impressions) % request.n_clients,
        queries=np.array([query for query, _, _, _ in parts], dtype=np.int64),
        starts=np.concatenate([[0], np.cumsum([len(ranking) for _, ranking, _, _ in parts])]).astype(np.int64),
        shown=np.concatenate([ranking for _, ranking, _, _ in parts]),
        is_clicked=np.concatenate([is_clicked for _, _, is_clicked, _ in parts]),
        propensities=np.concatenate([propensities for _, _, _, propensities in parts]),
        client_names=tuple(f"u{client}" for client in range(min(request.n_clients, request.n_impressions))),
    )


def _impressions(
    queries: QuerySet, scores: Array, user: User, request: LogRequest, key: Array
) -> Iterator[tuple[int, Array, Array, Array]]:
    """(query, ranking [k], is_clicked [k], propensities [k]) of each impression, in order."""
    longest = int(queries.lengths.max())
    for first in range(0, request.n_impressions, _BLOCK):
        numbers = np.arange(first, min(first + _BLOCK, request.n_impressions))
        keys = {purpose: _keys_of(key, purpose, numbers, n_clients=request.n_clients) for purpose in _PURPOSES}
        chosen = draw_below(keys[Purpose.QUERY], queries.n_queries, 1)[:, 0]
        # Why: draw i of a stream does not depend on how many are made, so shorter lists use the first ones.
        show = draw_uniform(keys[Purpose.SHOW], longest)
        click, stop = (draw_uniform(keys[purpose], request.k) for purpose in (Purpose.CLICK, Purpose.STOP))
        for place, query in enumerate(chosen.tolist()):
            rows = queries.rows(query)
            own, grades = scores[rows], queries.grades[rows]
            ranking = sample_ranking(own, show[place, : len(own)], k=request.k)
            is_clicked = user(grades[ranking], click[place, : len(ranking)], stop[place, : len(ranking)])
            yield query, ranking, is_clicked, log_propensities(own, ranking)


def _keys_of(key: Array, purpose: Purpose, numbers: Array, *, n_clients: int) -> Array:
    """[n, 2] stream(key, purpose, round, client, 0) of each impression."""
    by_round = fold_in(stream(key, purpose), 1 + numbers // n_clients)  # rounds count from 1
    return fold_in(fold_in(by_round, numbers % n_clients), np.asarray(0))


def _load_scored(request: LogRequest, *, tell: Callable[[str], None] | None) -> tuple[Dataset, Array]:
    """The fold, and the logging ranker's scores [n_documents] of its training documents."""
    ranker, params, origin = (None, None, {}) if request.ranker is None else read_ranker(request.ranker)
    dataset = load_dataset(
        request.data,
        folds=[request.fold],
        normalise=request.normalise or origin.get("data", {}).get("normalise"),
        keep_document_ids=True,
        progress=tell,
    )
    features = dataset.folds[0].train.features
    if ranker is None or params is None:
        return dataset, LinearRanker(dataset.n_features).score(np.zeros(dataset.n_features, np.float32), features)
    if ranker.n_features != dataset.n_features:
        raise ValueError(
            f"{request.ranker} was trained on {ranker.n_features} features, {dataset.name} has {dataset.n_features}: "
            "they do not fit."
        )
    return dataset, ranker.score(params, features)


def _check_request(request: LogRequest, out: Path) -> None:
    for name in ("n_impressions", "n_clients", "k"):
        if getattr(request, name) < 1:
            raise ValueError(f"{name} is {getattr(request, name)}, must be at least 1.")
    if out.exists():
        raise FileExistsError(f"{out} exists already. Name another place, or remove it first.")
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(f"{out.parent} is no directory. Make it first, or name another place.")


def _describe_log(log: ClickLog, request: LogRequest, dataset: Dataset) -> Json:
    """Counts only."""
    return {
        "data": dataset.name,
        "fold": request.fold,
        "normalise": dataset.normalise,
        "clicks": request.clicks,
        "seed": request.seed,
        "n_impressions": log.n_impressions,
        "n_clients": log.n_clients,
        "n_queries": len(np.unique(log.queries)),
        "n_clicks": int(log.is_clicked.sum()),
    }
