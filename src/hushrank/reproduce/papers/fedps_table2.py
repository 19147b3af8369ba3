"""Table 2 of [fedps]: how far what a search engine sees of a user is from what the user did, and what hiding costs.

What is seen in each way of searching stands in `personal/queries/observed.py`. Beside each divergence stands the MAP of
a light ranker (`personal/queries/light.py`) that is trained and used with the profile that this way of searching
leaves: the pooled log of those who share an id, the log with covers in it, or the user's own. Differs: the paper trains
PEPS. Of federated training the light ranker only needs sums over clients, so no rounds are run: clients that are too
late are left out of the sums (`fedps-flat`), or their proxies carry their part (`fedps-proxy`). With proxies the sums,
and so the MAP, are those of central training by construction: that row is assigned, not measured, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from hushrank.files import Json
from hushrank.personal.features import FeatureSource, make_features, make_source
from hushrank.personal.keys import COVER_QUERY, GROUP_USER
from hushrank.personal.log import TEST, TRAIN, Periods, SearchLog, SearchPopulation
from hushrank.personal.queries.light import PairTable, average_precisions, fit_light, make_pairs
from hushrank.personal.queries.observed import (
    ADD_EPSILON,
    CENTRAL,
    FLAT,
    JELINEK_MERCER,
    PROXY,
    SMOOTHINGS,
    WAYS,
    count_user,
    count_words,
    divide_users,
    measure_users,
)
from hushrank.personal.queries.polluted import join_logs, mix_covers
from hushrank.personal.vectors import train_vectors
from hushrank.recipes.personal_setting import find_population, make_covering
from hushrank.reproduce.literature import Claim, PublishedResult, find_result
from hushrank.reproduce.papers.fedps import FIRST_SEED, LATE, N_POPULATIONS, N_USERS, QUICK_USERS
from hushrank.reproduce.reproduction import POPULATION, DataChoice, Reproduction, ReproductionSize
from hushrank.reproduce.rows import beside
from hushrank.reproduce.singles import describe_singles
from hushrank.reproduce.verdicts import Pair, Values, Verdict, all_better, both
from hushrank.runs.personal_search import PRIMARY
from hushrank.runs.result import spread
from hushrank.streams import Purpose, draw_bits, fold_in, seed_key, stream
from hushrank.types import Array

NAME = "fedps.table2"
KL = {JELINEK_MERCER: "KL-divergence", ADD_EPSILON: "KL-divergence/epsilon"}  # {smoothing: metric}
MOST_USERS = 5000  # of a real log, in whole groups. Why: more say the same and take hours
ORIGINAL = "original-order"  # the engine's own list, for comparison
TRAINED = (CENTRAL, GROUP_USER, COVER_QUERY, FLAT, PROXY)
RANKED = (ORIGINAL, *TRAINED)  # those with a MAP
AS_CENTRAL = "as central by construction"
_ASSIGNED = {PROXY: AS_CENTRAL}  # {way: why its MAP is not measured}
_QUICK_DOCUMENTS, _QUICK_GROUP = 1500, 10


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found of one population: one number for each user, in the same order everywhere."""

    divergence: Mapping[str, Mapping[str, Array]]  # {smoothing: {way: [n_users]}}
    precision: Mapping[str, Array]  # {way: [n_users] MAP in the test period; NaN without a search there}


@dataclass(frozen=True, slots=True)
class Hidden:
    """One user's part of a log that hides it: what a ranker learns from, and what it is measured on."""

    log: SearchLog
    features: Array  # [m, n_features]
    train: Array  # searches
    test: Array

    @property
    def pairs(self) -> PairTable:
        return make_pairs(self.log, self.features, self.train)


def compute_table(data: Sequence[DataChoice], scale: ReproductionSize) -> Json:
    """Rows, findings, a note and single generated users."""
    published = find_result(NAME)
    found = {choice: [examine(population, scale) for population in populations(choice, scale)] for choice in data}
    rows = [row for choice, each in found.items() for row in make_rows(published, choice, each)]
    examined = {choice.label: each for choice, each in found.items()}
    seeds = sorted({seed for choice in data for seed in seeds_of(choice, scale) if choice.is_stand_in})
    said = f" Users were generated from seed {', '.join(map(str, seeds))}; tests pair users." if seeds else ""
    note = (
        "MAP is that of a light ranker of 23 weights on the profile that each way leaves, not of PEPS. no-clicks is a "
        f"control: fedps-flat without covers. The MAP of fedps-proxy is {AS_CENTRAL}, and not measured.{said}"
    )
    findings = [judge(claim, examined) for claim in published.findings]
    return {"rows": rows, "findings": findings, "note": note, "singles": list_precisions(data, found, scale)}


def list_precisions(
    data: Sequence[DataChoice], found: Mapping[DataChoice, Sequence[Examined]], scale: ReproductionSize
) -> list[Json]:
    """MAP of every generated user in each way; of a real log nothing."""
    return [
        describe_singles(
            {"data": choice.label, "method": way, POPULATION: seed},
            {PRIMARY: {user: float(v) for user, v in enumerate(each.precision[way]) if np.isfinite(v)}},
        )
        for choice in data
        if choice.is_stand_in
        for seed, each in zip(seeds_of(choice, scale), found[choice], strict=True)
        for way in RANKED
    ]


def seeds_of(choice: DataChoice, scale: ReproductionSize) -> list[int]:
    """Of generated populations; one entry for a real log."""
    if not choice.is_stand_in:
        return [scale.seed]
    return list(range(FIRST_SEED, FIRST_SEED + (scale.repeats or (1 if scale.quick else N_POPULATIONS))))


def populations(choice: DataChoice, scale: ReproductionSize) -> Iterator[SearchPopulation]:
    for seed in seeds_of(choice, scale):
        sizes = f"n_users={QUICK_USERS},n_documents={_QUICK_DOCUMENTS}" if scale.quick else f"n_users={N_USERS}"
        yield find_population(f"{choice.source}:{sizes},seed={seed}" if choice.is_stand_in else choice.source)


# What is measured
def examine(population: SearchPopulation, scale: ReproductionSize) -> Examined:
    """Group by group, so that the logs of one group are in memory."""
    key, collection = seed_key(scale.seed), population.collection
    source = make_source(collection, train_vectors(collection))
    cover = make_covering(collection, key)
    corpus = count_words(collection.titles, collection.n_words)
    found: list[Mapping[str, Mapping[str, Array]]] = []
    hidden: dict[str, list[Hidden]] = {way: [] for way in (CENTRAL, GROUP_USER, COVER_QUERY)}
    for members in list_groups(population.n_users, key, size=_QUICK_GROUP if scale.quick else None):
        logs = [population.log_of(user) for user in members]
        covers = [cover(int(user), log.queries) for user, log in zip(members, logs, strict=True)]
        words = [count_user(collection, *each) for each in zip(logs, covers, strict=True)]
        one = np.zeros(len(members), dtype=np.int64)
        found.append({how: measure_users(words, one, corpus, smoothing=how) for how in SMOOTHINGS})
        for way, part in hide(logs, covers, source, population.periods).items():
            hidden[way] += part
    divergence = {how: {way: np.concatenate([each[how][way] for each in found]) for way in WAYS} for how in SMOOTHINGS}
    return Examined(divergence, measure_precision(hidden, key))


def list_groups(n_users: int, key: Array, *, size: int | None) -> list[Array]:
    """Users of each group, as many groups as have `MOST_USERS`."""
    groups = divide_users(n_users, key) if size is None else divide_users(n_users, key, size=size)
    members = [np.flatnonzero(groups == group) for group in range(int(groups.max(initial=0)) + 1)]
    ends = np.cumsum([len(each) for each in members])
    return [each for each, end in zip(members, ends, strict=True) if end <= max(MOST_USERS, ends[0])]


def hide(
    logs: Sequence[SearchLog], covers: Sequence[Array], source: FeatureSource, periods: Periods
) -> dict[str, list[Hidden]]:
    """{way: [n] the users of one group}."""
    joined, owners = join_logs(logs)
    shared = make_features(source, joined)
    every = [np.ones(log.n_searches, dtype=bool) for log in logs]
    mixed = [mix_covers(log, own, source.index) for log, own in zip(logs, covers, strict=True)]
    return {
        CENTRAL: [_hidden(log, make_features(source, log), own, periods) for log, own in zip(logs, every, strict=True)],
        GROUP_USER: [_hidden(joined, shared, owners == user, periods) for user in range(len(logs))],
        COVER_QUERY: [_hidden(log, make_features(source, log), own, periods) for log, own in mixed],
    }


def _hidden(log: SearchLog, features: Array, is_own: Array, periods: Periods) -> Hidden:
    has_click = np.zeros(log.n_searches, dtype=bool)
    has_click[log.owners()[log.is_clicked]] = True
    period = periods.of(log.times)
    train, test = (np.flatnonzero(is_own & has_click & (period == which)) for which in (TRAIN, TEST))
    return Hidden(log, features, train, test)


def measure_precision(hidden: Mapping[str, Sequence[Hidden]], key: Array) -> dict[str, Array]:
    """{way: [n_users] MAP}. Under FedPS a profile is the user's own, as it is centrally."""
    own = hidden[CENTRAL]
    pairs = {way: [each.pairs for each in users] for way, users in hidden.items()}
    draws = draw_bits(fold_in(stream(key, Purpose.STRAGGLER), np.arange(len(own))), 1)[:, 0]
    in_time = np.sort(np.argsort(draws, kind="stable")[round(LATE * len(own)) :])
    weights = {way: fit_light(each) for way, each in pairs.items()}
    weights[PROXY] = weights[CENTRAL]  # Why: proxies carry the part of those who are late: the same sums
    weights[FLAT] = fit_light([pairs[CENTRAL][user] for user in in_time])
    weights[ORIGINAL] = np.zeros_like(weights[CENTRAL])  # equal scores keep the engine's order
    return {
        way: np.array([precision_of(each, weights[way]) for each in hidden.get(way, own)], dtype=np.float64)
        for way in RANKED
    }


def precision_of(user: Hidden, weights: Array) -> float:
    found = average_precisions(user.log, user.features @ weights, user.test)
    return float(found.mean()) if len(found) else float("nan")


# What is said of it
def make_rows(published: PublishedResult, choice: DataChoice, found: Sequence[Examined]) -> list[Json]:
    """Means over users; spread over populations."""
    printed = {(row.cell["data"], row.cell["method"]): row.published for row in published.rows}
    rows = []
    for way in (*WAYS, ORIGINAL):
        for smoothing, metric in KL.items() if way in WAYS else ():
            means = [{"value": float(each.divergence[smoothing][way].mean())} for each in found]
            theirs = printed.get((choice.name, way)) if smoothing == JELINEK_MERCER else None
            rows.append({"data": choice.label, "method": way, "metric": metric, **beside(spread(means), theirs)})
        if way in RANKED:
            means = [{"value": float(np.nanmean(each.precision[way]))} for each in found]
            cell = {"data": choice.label, "method": way, "metric": PRIMARY, "why": _ASSIGNED.get(way, "")}
            rows.append({**cell, **beside(spread(means), None)})
    return rows


def judge(claim: Claim, found: Mapping[str, Sequence[Examined]]) -> Json:
    return {"id": claim.id, "claim": claim.claim, "where": claim.where, **most_private(found).as_json()}


def most_private(found: Mapping[str, Sequence[Examined]]) -> Verdict:
    """Both FedPS models above both baselines, user by user, in either smoothing and in every population together."""
    pairs = [
        Pair(f"{data} {ours} over {theirs} ({smoothing})", *(pool(each, smoothing, way) for way in (ours, theirs)))
        for smoothing in SMOOTHINGS
        for data, each in found.items()
        for ours in (FLAT, PROXY)
        for theirs in (GROUP_USER, COVER_QUERY)
    ]
    return both(all_better(pairs), tell_precision(found))


def pool(found: Sequence[Examined], smoothing: str, way: str) -> Values:
    """{(population, user): divergence}"""
    each = [one.divergence[smoothing][way] for one in found]
    return {(place, user): float(v) for place, values in enumerate(each) for user, v in enumerate(values)}


def tell_precision(found: Mapping[str, Sequence[Examined]]) -> Verdict:
    """Says what each way of searching reaches, and judges nothing."""
    means = {
        data: {way: fmean(np.nanmean(e.precision[way]) for e in each) for way in RANKED} for data, each in found.items()
    }
    said = "; ".join(
        f"{data} " + ", ".join(f"{way} {_ASSIGNED.get(way, f'{mean:.4f}')}" for way, mean in by.items())
        for data, by in means.items()
    )
    return Verdict(True, None, f"MAP of the light ranker: {said}.")


REPRODUCTIONS = (
    Reproduction(
        NAME,
        compute=compute_table,
        compute_seconds=(280.0, 15.0),
        quick_limits="A few users, ten to an id: the quick version shows that everything works, and no effect.",
    ),
)
