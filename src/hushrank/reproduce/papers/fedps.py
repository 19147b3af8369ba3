"""FedPS [fedps]: Tables 3 to 6 and Figure 4, central, flat and with proxies.

Generated users stand in for the two logs: `aol-like` and `commercial-like`, three populations of 300 users each. Every
model is taken from the round with the highest MAP on validation searches. Tests pair what two models reach for the same
user. Differs: word vectors of 32 numbers, as the recipe has them, not 100. Claims about proxies: `fedps_proxy.py`;
about shared ids and cover queries: `fedps_hidden.py`; about weeks: `fedps_weeks.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import pairwise
from statistics import fmean

from hushrank.files import Json
from hushrank.personal.keys import WHOLE
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reproduce.papers import fedps_hidden, fedps_proxy, fedps_weeks
from hushrank.reproduce.papers.fedps_reading import (
    CLOSE,
    FIRST,
    IMPROVE,
    MRR,
    N_ROUNDS,
    N_STEPS,
    OF_EQUAL,
    best_rounds,
    name_stage,
    pair_users,
    pool_users,
    populations_of,
    read_at_best,
    read_stage,
    tell_equal_lists,
)
from hushrank.reproduce.papers.thesis_skew import for_all
from hushrank.reproduce.reproduction import (
    POPULATION,
    DataChoice,
    Reproduction,
    ReproductionSize,
    Trial,
)
from hushrank.reproduce.verdicts import (
    Cell,
    NotJudged,
    Trials,
    Verdict,
    all_better,
    all_equal,
    all_higher,
    both,
    check_some,
)
from hushrank.runs.personal_search import BEST, ENGINES_ORDER, PRIMARY, STAGE

# Of the populations. Why: no test search of these chose anything. Validation searches of these chose the rounds of
# `LONGER` and `WEEK_ROUNDS`, and choose the round that every model is taken from
FIRST_SEED = 11
N_USERS, N_POPULATIONS = 300, 3
# {log: rounds of ten clients in a step}. Why so many: 300 users make 30 steps in a round, the paper's 26,270 make
# 2,627. Why three times as many: users of `commercial-like` have a third of the searches to train on
ROUNDS = {"aol": 24, "commercial": 72}
# {model: times as many}. Why: on validation searches federated HTPS was best in its last rounds, in all populations
LONGER = {"htps": 2}
N_LOOKS = 12
PUBLISHED_ROUNDS = 8  # on a real log: the most that any model of Table 4 took
CENTRAL_ROUNDS = 8  # Why: each has as many steps as all clients' visits of a round together
QUICK: Json = {"rounds": 2, "word_dim": 8, "eval_every": 1}
QUICK_USERS = 30
MODELS = ("hrnn", "htps", "peps")
COHORTS = (5, 10, 20, 30, 100)
EPOCHS = (1, 2, 3)
LATE = 0.1  # of the clients are poorly connected, where the paper says so
PROXY: Json = {"topology": "proxy", "stragglers": LATE}
STAGES, QUICK_STAGES = 8, 3
# Of a stage, which has no validation searches. Why these: with lists of one length PEPS is best on the validation
# searches of Table 3 after 1 or 2 rounds in one place and after 12 to 16 on clients; later rounds cost MAP. These
# searches are those of the week after stage 6
WEEK_ROUNDS = {"central": 2, "federated": 14}
EQUAL_LISTS = "n_candidates=10,n_short=10,"  # Why: aol-like has long lists in its last week alone. In short ones, which
# always hold what was clicked, even an untrained model beats the engine's order. Weeks must be alike to be compared
CLEAR = 0.001  # level at which personalised models must beat others
TOGETHER = "Of all populations together: "
_ORIGINAL, _KNRM = {"method": "original-order"}, {"method": "knrm"}
FEDERATED_KNRM: Cell = {"method": "fedps", "ranker": "knrm"}  # the paper has KNRM in one place alone


# What runs
def search(data: DataChoice, scale: ReproductionSize, cell: Cell, *, lists: str = "", **changes: object) -> list[Trial]:
    """One trial for each generated population, or one on a real log; lists: sizes that generated ones have."""
    own: Json = {"rounds": CENTRAL_ROUNDS if changes.get("topology") == "central" else PUBLISHED_ROUNDS}
    if changes.get("topology") != "central" and data.is_stand_in:
        rounds = ROUNDS[data.name] * LONGER.get(str(changes.get("model")), 1)
        own = {"rounds": rounds, "eval_every": rounds // N_LOOKS}
    size: Json = {"eval_every": 1, **own, **changes, **(QUICK if scale.quick else {})}
    if changes.get("model") == "original":
        size = changes
    if "updating" in changes:
        size.pop("eval_every")  # weeks are measured at their ends
    if changes.get("updating") == "online":
        size.pop("rounds")  # whoever has new searches applies
    return [
        Trial(
            {"data": data.label, **cell, **which},
            change_recipe(NAMED["fedps"], {**size, "data": source, "repeats": repeats, "seed": scale.seed}),
        )
        for source, repeats, which in list_populations(data, scale, lists)
    ]


def list_populations(data: DataChoice, scale: ReproductionSize, lists: str) -> list[tuple[str, int, Cell]]:
    """[(data, repeats, entry of the cell)]: generated users are made anew for each repeat, a real log is there once."""
    if not data.is_stand_in:
        return [(data.source, scale.repeats or 1, {})]
    n_users, usual = (QUICK_USERS, 1) if scale.quick else (N_USERS, N_POPULATIONS)
    seeds = range(FIRST_SEED, FIRST_SEED + (scale.repeats or usual))
    return [(f"{data.source}:n_users={n_users},{lists}seed={seed}", 1, {POPULATION: seed}) for seed in seeds]


def overall(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """Quick on the first log alone: P-Improve is the other's, and takes as long again."""
    if scale.quick and data.name == "commercial":
        return []
    trials = search(data, scale, _ORIGINAL, model="original")
    trials += search(data, scale, _KNRM, model="knrm", topology="central")
    trials += search(data, scale, FEDERATED_KNRM, model="knrm")
    for model in MODELS:
        trials += search(data, scale, {"method": "central", "ranker": model}, model=model, topology="central")
        trials += search(data, scale, {"method": "fedps", "ranker": model}, model=model)
    trials += hidden(data, scale)
    trials += search(data, scale, {"method": "fedps-flat", "ranker": "peps"}, model="peps", stragglers=LATE)
    cell = {"method": "fedps-proxy", "ranker": "peps", "offload": WHOLE}
    trials += search(data, scale, cell, model="peps", offload=WHOLE, **PROXY)
    return trials + (with_equal_lists(data, scale) if data.name == "aol" and data.is_stand_in else [])


def with_equal_lists(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """What claims compare, once more for the same users with lists of one length."""
    if scale.quick:
        return []
    trials = search(data, scale, {**_ORIGINAL, **OF_EQUAL}, model="original", lists=EQUAL_LISTS)
    trials += search(data, scale, {**_KNRM, **OF_EQUAL}, model="knrm", topology="central", lists=EQUAL_LISTS)
    trials += search(data, scale, {**FEDERATED_KNRM, **OF_EQUAL}, model="knrm", lists=EQUAL_LISTS)
    for model in MODELS:
        central, flat = ({"method": method, "ranker": model, **OF_EQUAL} for method in ("central", "fedps"))
        trials += search(data, scale, central, model=model, topology="central", lists=EQUAL_LISTS)
        trials += search(data, scale, flat, model=model, lists=EQUAL_LISTS)
    late: Cell = {"ranker": "peps", **OF_EQUAL}
    keys: Json = {"model": "peps", "lists": EQUAL_LISTS}
    trials += search(data, scale, {"method": "fedps-flat", **late}, stragglers=LATE, **keys)
    trials += search(data, scale, {"method": "fedps-proxy", "offload": WHOLE, **late}, offload=WHOLE, **PROXY, **keys)
    return trials + hidden(data, scale, OF_EQUAL, lists=EQUAL_LISTS)


def hidden(data: DataChoice, scale: ReproductionSize, variant: Cell | None = None, *, lists: str = "") -> list[Trial]:
    """PEPS in one place, on logs in which users hide."""
    keys: Json = {"model": "peps", "topology": "central", "lists": lists}
    return [
        trial
        for way in fedps_hidden.WAYS
        for trial in search(data, scale, {**fedps_hidden.cell_of(way), **(variant or {})}, hidden_by=way, **keys)
    ]


def cohorts(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """Larger steps for more rounds, with as many looks. Why: all take at least as many steps as ten at a time do."""
    n_users = QUICK_USERS if scale.quick and data.is_stand_in else N_USERS
    sizes = {k: max(k // 10, 1) for k in COHORTS if k <= n_users}
    rounds = {k: n * ROUNDS[data.name] for k, n in sizes.items()}
    longer: dict[int, Json] = {k: {"rounds": n, "eval_every": n // N_LOOKS} for k, n in rounds.items()}
    return [
        trial
        for k in sizes
        for trial in search(data, scale, {"n_sampled": k}, cohort=k, **PROXY, **(longer[k] if data.is_stand_in else {}))
    ]


def local_epochs(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    return [t for n in EPOCHS for t in search(data, scale, {"epochs": n}, epochs=n, **PROXY)]


def weeks(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """Retrained every week, as in the figure; without proxies also in the two other ways of section 3.2."""
    keys: Json = {"stages": QUICK_STAGES if scale.quick else STAGES, "lists": EQUAL_LISTS}
    central: Json = {"topology": "central", "rounds": WEEK_ROUNDS["central"]}
    federated: Json = {"rounds": WEEK_ROUNDS["federated"], "stragglers": LATE}
    cell = {"method": "central", "updating": "retrain"}
    trials = search(data, scale, cell, updating="retrain", **central, **keys)
    for how in ("retrain", "continue", "online"):
        cell = {"method": "fedps-flat", "updating": how}
        trials += search(data, scale, cell, updating=how, **federated, **keys)
    cell = {"method": "fedps-proxy", "updating": "retrain"}
    return trials + search(data, scale, cell, updating="retrain", **{**federated, **PROXY, **keys})


# Table 3
def personalised_above_general(outcome: Trials) -> Verdict:
    """Central training, at p < .001 in every population by itself.

    Told beside it: the users of all populations together, a weaker question, as each of these has one training.
    """
    models = [str(model) for model in outcome.present("ranker", MODELS)]
    found = reduce(both, (compare_with_general(outcome, data, models) for data in outcome.data))
    pooled = reduce(both, (pool_over_general(outcome, data, models) for data in outcome.data))
    equal = tell_equal_lists(
        outcome,
        lambda data: [judge(outcome, data, models, **OF_EQUAL) for judge in (compare_with_general, pool_over_general)],
    )
    beside = Verdict(True, None, f"{TOGETHER}{pooled.why}", tests=pooled.tests)
    return for_all(outcome, both(both(found, beside), equal), {"method": "central"}, ranker=MODELS)


def pool_over_general(outcome: Trials, data: str, models: Sequence[str], **variant: str) -> Verdict:
    pairs = [
        pool_users(outcome, data, {"method": "central", "ranker": model, **variant}, {**other, **variant})
        for model in models
        for other in (_ORIGINAL, _KNRM)
    ]
    return all_better(pairs, level=CLEAR)


def compare_with_general(outcome: Trials, data: str, models: Sequence[str], **variant: str) -> Verdict:
    pairs = [
        pair_users(outcome, data, {"method": "central", "ranker": model, **variant}, {**other, **variant}, population)
        for model in models
        for other in (_ORIGINAL, _KNRM)
        for population in populations_of(outcome, data)
    ]
    return all_better(pairs, level=CLEAR)


def federated_equals_central(outcome: Trials) -> Verdict:
    """Within 2 % of central training's MAP. Why not the paper's test: no significant difference is no equality."""
    models = [str(model) for model in outcome.present("ranker", MODELS)]
    found = [compare_with_central(outcome, data, model) for data in outcome.data for model in models]
    check_some(found)
    federated = Trials(tuple(t for t in outcome.finished if t.cell["method"] == "fedps" and t.cell["ranker"] in MODELS))
    equal = tell_equal_lists(
        outcome, lambda data: [compare_with_central(outcome, data, model, **OF_EQUAL) for model in models]
    )
    told = both(Verdict(True, None, tell_unfinished(federated)), equal)
    return for_all(outcome, both(reduce(both, found), told), {"method": "fedps"}, ranker=MODELS)


def federated_knrm_equals_central(outcome: Trials) -> Verdict:
    """As `federated_equals_central`, of the model that knows no user."""
    check_some(outcome.data)
    found = [compare_with_central(outcome, data, "knrm") for data in outcome.data]
    equal = tell_equal_lists(outcome, lambda data: [compare_with_central(outcome, data, "knrm", **OF_EQUAL)])
    return both(reduce(both, found), equal)


def compare_with_central(outcome: Trials, data: str, model: str, **variant: str) -> Verdict:
    ours, theirs = ({"method": method, "ranker": model, **variant} for method in ("fedps", "central"))
    theirs = {**_KNRM, **variant} if model == "knrm" else theirs
    pair = pool_users(outcome, data, ours, theirs)
    return all_equal([pair], margin=round(CLOSE * fmean(pair.theirs.values()), 4))


# Tables 4 and 5
def values_by(outcome: Trials, key: str, metric: str) -> dict[int, list[float]]:
    """{value of the key: that of each training, of all populations and data}, from the smallest value."""
    values = sorted({trial.cell[key] for trial in outcome.finished})
    if len(values) < 2:
        raise NotJudged(f"Run with one {key} alone.")
    each = {value: [t for t in outcome.finished if t.cell[key] == value] for value in values}
    return {
        value: [v for t in trials for v in read_at_best(t, t.users[0], metric).values()]
        for value, trials in each.items()
    }


def monotone(outcome: Trials, key: str, metric: str, *, rises: bool) -> Verdict:
    found = judge_trend(values_by(outcome, key, metric), key, metric, rises=rises)
    return both(found, Verdict(True, None, tell_unfinished(outcome)))


def judge_trend(values: Mapping[int, Sequence[float]], key: str, metric: str, *, rises: bool) -> Verdict:
    """Different between the ends, by a test; and means never the other way from one value to the next."""
    first, *_, last = values
    high, low = (last, first) if rises else (first, last)
    ends = all_higher([(f"{key}={high} over {key}={low}", values[high], values[low])])
    along = [fmean(each) if rises else -fmean(each) for each in values.values()]
    is_monotone = all(a <= b for a, b in pairwise(along))
    return both(ends, Verdict(is_monotone, None, tell_means(values, key, metric)))


def tell_means(values: Mapping[int, Sequence[float]], key: str, metric: str) -> str:
    said = "; ".join(f"{key}={value} {fmean(each):.4g}" for value, each in values.items())
    return f"Until the best validation MAP {metric}, on average: {said}."


def tell_unfinished(outcome: Trials) -> str:
    """How many trainings were best in their last round: more rounds might have found a better one."""
    ends = [
        best == trial.result["recipe"]["rounds"]
        for trial in outcome.finished
        for best in best_rounds(trial, trial.users[0]).values()
    ]
    return f"{sum(ends)} of {len(ends)} trainings were best in their last round."


def tell_best(outcome: Trials, key: str) -> Verdict:
    """Says what each value reached, and judges nothing."""
    means = {value: fmean(each) for value, each in values_by(outcome, key, PRIMARY).items()}
    said = "; ".join(f"{key}={value} {mean:.4f}" for value, mean in means.items())
    return Verdict(True, None, f"Best MAP, means: {said}. {tell_unfinished(outcome)}")


def smallest_over(outcome: Trials, key: str, others: Sequence[int]) -> Verdict:
    """The smallest value of a key against others, user by user."""
    said = tell_best(outcome, key)
    least = min(trial.cell[key] for trial in outcome.finished)
    pairs = [pool_users(outcome, data, {key: least}, {key: other}) for data in outcome.data for other in others]
    return both(all_better(pairs), said)


def fewer_steps(outcome: Trials) -> Verdict:
    return monotone(outcome, "n_sampled", N_STEPS, rises=False)


def more_rounds(outcome: Trials) -> Verdict:
    return monotone(outcome, "n_sampled", N_ROUNDS, rises=True)


def smaller_cohort_better(outcome: Trials) -> Verdict:
    """The smallest over the largest: "tends to" is said of the whole range. Those between are told beside it."""
    sizes = sorted({trial.cell["n_sampled"] for trial in outcome.finished})
    found = smallest_over(outcome, "n_sampled", sizes[-1:])
    if len(sizes) < 3:
        return found
    also = all_better(
        [
            pool_users(outcome, data, {"n_sampled": sizes[0]}, {"n_sampled": size})
            for data in outcome.data
            for size in sizes[1:-1]
        ]
    )
    return both(found, Verdict(True, None, f"Beside it, of sizes between: {also.why}", tests=also.tests))


def epochs_save_rounds(outcome: Trials) -> Verdict:
    """Steps follow: the number of clients in one stays."""
    values = values_by(outcome, "epochs", N_ROUNDS)
    if 1 not in values:
        raise NotJudged("Not run: epochs=1.")
    return both(judge_epochs(values), Verdict(True, None, tell_unfinished(outcome)))


def judge_epochs(values: Mapping[int, Sequence[float]]) -> Verdict:
    """Rounds with one epoch over those with each larger number."""
    more = [n for n in values if n > 1]
    found = all_higher([(f"epochs=1 over epochs={n}", values[1], values[n]) for n in more])
    return both(found, Verdict(True, None, tell_means(values, "epochs", N_ROUNDS)))


def epochs_cost_quality(outcome: Trials) -> Verdict:
    return smallest_over(outcome, "epochs", sorted({t.cell["epochs"] for t in outcome.finished} - {1}))


_ONE_POPULATION = "A few users for a few rounds: the quick version shows that everything works, and no effect."
REPRODUCTIONS = (
    Reproduction(
        "fedps.table3",
        overall,
        {
            "personalised-above-general": personalised_above_general,
            "federated-equals-central": federated_equals_central,
            "federated-knrm-equals-central": federated_knrm_equals_central,
            "proxy-above-other-protections": fedps_hidden.proxy_above_others,
            "cover-queries-cost-nothing": fedps_hidden.covers_cost_nothing,
            "proxy-above-flat": fedps_proxy.proxy_above_flat,
            "proxy-not-below-flat": fedps_proxy.proxy_not_below_flat,
        },
        metrics={PRIMARY: {}, MRR: {}, FIRST: {}, IMPROVE: {}},
        singles=(f"{BEST}{PRIMARY}",),
        read=read_at_best,
        quick_limits=_ONE_POPULATION,
    ),
    Reproduction(
        "fedps.table4",
        cohorts,
        {
            "larger-cohort-fewer-steps": fewer_steps,
            "larger-cohort-more-rounds": more_rounds,
            "smaller-cohort-better": smaller_cohort_better,
        },
        metrics={N_ROUNDS: {}, N_STEPS: {}, PRIMARY: {}},
        singles=(f"{BEST}{PRIMARY}",),
        read=read_at_best,
        quick_limits=_ONE_POPULATION,
    ),
    Reproduction(
        "fedps.table5",
        local_epochs,
        {"more-epochs-fewer-rounds": epochs_save_rounds, "more-epochs-lower-map": epochs_cost_quality},
        metrics={N_ROUNDS: {}, N_STEPS: {}, PRIMARY: {}},
        singles=(f"{BEST}{PRIMARY}",),
        read=read_at_best,
        quick_limits=_ONE_POPULATION,
    ),
    Reproduction("fedps.table6", compute=lambda _data, _scale: fedps_proxy.make_table6()),
    Reproduction(
        "fedps.figure4",
        weeks,
        {
            "quality-grows-with-data": fedps_weeks.quality_grows,
            "retraining-above-online": fedps_weeks.retraining_above_online,
            "proxy-below-central-early": fedps_weeks.below_central_early,
            "proxy-near-central-late": fedps_weeks.near_central_late,
            "flat-falls-behind-proxy": fedps_weeks.flat_falls_behind,
        },
        metrics={name_stage(stage): {} for stage in range(1, STAGES)},
        singles=[f"{STAGE}{stage}/{name}" for stage in range(1, STAGES) for name in (PRIMARY, ENGINES_ORDER)],
        read=read_stage,
        quick_limits=_ONE_POPULATION,
    ),
)
