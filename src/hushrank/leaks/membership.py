"""Does a ranker still remember somebody? A membership test against clients that left.

The attacker has the leaver's impressions (queries, lists shown, clicks), the ranker under test, and a reference ranker
that was trained without the leaver, with another seed. It asks how much more the tested ranker prefers what the leaver
clicked than the reference does. Rankers that may remember are positives, rankers trained without the leaver, with
further seeds, are negatives: an area of .5 under the ROC curve is chance. It is a measure, not a bound: a better attack
may find more.

Pairs are those that PDGD infers from the clicks, each counted once. Why not PDGD's weights: they follow from the scores
of the ranker that showed the list, which the attacker of these impressions lacks; and what they correct, that documents
shown first are clicked more, is the same for tested ranker and reference and leaves their difference alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hushrank.data.clicklog import ClickLog
from hushrank.engine.inputs import cell_key, initial_memory, initial_params
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.federation.recording import record
from hushrank.federation.round import run_round
from hushrank.files import Json
from hushrank.learners.pdgd import infer_preferences, sigmoid
from hushrank.metrics.roc import MeasuredRoc, RatedGroup, measure_roc
from hushrank.types import Array, NamedArrays, QuerySet


@dataclass(frozen=True, slots=True)
class Preferences:
    """What a client's clicks say: pairs of documents, as rows of its query set."""

    clicked: Array  # [n_pairs]
    passed_over: Array  # [n_pairs] seen on the same list and not clicked


def record_training(setting: Setting, cell: Cell) -> tuple[Array, ClickLog]:
    """The last parameters of a cell's training, and the impressions of all its clients. By the plain round: slow."""
    federation, recording = record(make_federation(setting, cell))
    params, key = initial_params(setting, cell), cell_key(setting, cell)
    state: NamedArrays = initial_memory(setting, params)
    for round in range(1, setting.rounds + 1):
        state, params, _ = run_round(federation, state, params, key=key, round=round)
    return params, recording.as_log()


def find_preferences(log: ClickLog, queries: QuerySet, client: int) -> Preferences:
    """The pairs of all impressions of one client, whose queries these are."""
    if not 0 <= client < log.n_clients:
        raise ValueError(f"client {client} is not in the log, must be from 0 to {log.n_clients - 1}.")
    if log.n_impressions and int(log.queries.max()) >= queries.n_queries:
        raise ValueError("the log has a query beyond the query set: take the queries that it was recorded on.")
    clicked, passed_over = list[int](), list[int]()
    for impression in np.flatnonzero(log.clients == client).tolist():
        places, candidates = log.places(impression), queries.rows(int(log.queries[impression]))
        rows = candidates.start + log.shown[places]
        if len(rows) and int(rows.max()) >= candidates.stop:
            raise ValueError("the log shows a document beyond its query: take the queries that it was recorded on.")
        for k, l in infer_preferences(log.is_clicked[places]):
            clicked.append(int(rows[k]))
            passed_over.append(int(rows[l]))
    if not clicked:
        raise ValueError(f"client {client} never preferred one document to another: there is nothing to test.")
    return Preferences(np.array(clicked), np.array(passed_over))


def mean_preference(preferences: Preferences, scores: Array) -> float:
    """Mean over the pairs of the chance that a ranker with these scores [n_documents] puts the clicked one first."""
    highest = int(max(preferences.clicked.max(), preferences.passed_over.max()))
    if np.ndim(scores) != 1 or len(scores) <= highest:
        raise ValueError(
            f"scores have shape {np.shape(scores)}, the clicks reach document {highest}: score all documents of the "
            "query set from which the preferences come."
        )
    gaps = np.asarray(scores, np.float64)[preferences.clicked] - np.asarray(scores, np.float64)[preferences.passed_over]
    if not np.isfinite(gaps).all():
        raise ValueError("a score is not finite, so it prefers nothing. Did training diverge?")
    return float(sigmoid(gaps).mean())


def score_membership(preferences: Preferences, tested: Array, reference: Array) -> float:
    """How much more the tested ranker prefers what the leaver clicked than the reference does; both are scores."""
    if np.shape(tested) != np.shape(reference):
        raise ValueError(
            f"scores of shapes {np.shape(tested)} and {np.shape(reference)} came, must be of the same documents."
        )
    return mean_preference(preferences, tested) - mean_preference(preferences, reference)


def measure_membership(
    positives: Mapping[int, Sequence[float]], negatives: Mapping[int, Sequence[float]], *, confidence: float = 0.95
) -> MeasuredRoc:
    """The test over many leavers: {leaver: `score_membership` of its rankers}, several seeds of one leaver together.

    positives: rankers that may remember; negatives: rankers retrained without the leaver. The interval is over leavers.
    It leaves out what all of them share: train the rankers that may remember with a seed of its own for each leaver.
    """
    if set(positives) != set(negatives):
        lacking = sorted(set(positives) ^ set(negatives))
        raise ValueError(f"leavers {lacking} have only positives or only negatives: each needs both.")
    groups = [RatedGroup(tuple(positives[leaver]), tuple(negatives[leaver])) for leaver in sorted(positives)]
    return measure_roc(groups, confidence=confidence)


def describe_membership(found: MeasuredRoc) -> Json:
    """As numbers for JSON and for an erasure record; an end of the interval that is not known is None."""
    low, high = found.interval or (None, None)
    return {
        "membership/auc": found.area,
        "membership/auc_low": low,
        "membership/auc_high": high,
        "membership/confidence": found.confidence,
        "membership/found_at_5_percent": found.found,
        "membership/leavers": found.n_groups,
        "membership/positives": found.n_positives,
        "membership/negatives": found.n_negatives,
    }
