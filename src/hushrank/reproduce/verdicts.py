"""What the trials behind a table found, and tests of what its paper claims about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

from hushrank.files import Json, JsonObject
from hushrank.metrics.significance import bonferroni, equivalence_test, independent_t_test, paired_t_test

OFFLINE, ONLINE = "offline/nDCG@10", "online/nDCG@10"
LEVEL = 0.05
_LEAST = 1e-300  # p that is told; Why: no p is 0, but float64 has no smaller ones
LEAST_LOOKS = 10  # of a ranker, for a mean over its training. Why: half of what a run has unless eval_every says less
Cell = JsonObject  # what is special about a trial: {"data": "mq2007", "method": "fpdgd", "n_clients": 10}
Values = Mapping[tuple[int, int], float]  # {(fold, repeat): value}


@dataclass(frozen=True, slots=True)
class Finished:
    """One trial that has run."""

    cell: Cell
    directory: Path
    result: JsonObject  # the run's JSON

    @property
    def users(self) -> tuple[str, ...]:
        clicks = self.result["recipe"]["clicks"]
        return (clicks,) if isinstance(clicks, str) else tuple(clicks)

    @property
    def is_diverged(self) -> bool:
        """Whether malicious clients made a training diverge: all of them count as 0."""
        return bool(self.result.get("is_diverged"))

    def metric(self, user: str, name: str) -> JsonObject:
        """{"mean", "std", "values"} of one user; refuses to judge what was not run."""
        if user not in self.users:
            raise NotJudged(f"Not run with {user} users.")
        metrics = self.result["metrics"]
        found: JsonObject = (metrics if isinstance(self.result["recipe"]["clicks"], str) else metrics[user])[name]
        return found

    def values(self, user: str, name: str = OFFLINE) -> Values:
        return {(row["fold"], row["repeat"]): row["value"] for row in self.metric(user, name)["values"]}

    def curve(
        self, user: str, name: str, *, along: str = "interactions"
    ) -> dict[tuple[int, int], list[tuple[int, float]]]:
        """{(fold, repeat): [(interactions, value)]}; along: `round` for rounds instead."""
        found: dict[tuple[int, int], list[tuple[int, float]]] = {}
        with (self.directory / "metrics.jsonl").open(encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                if row["click"] == user and row["name"] == name:
                    cell = row["fold"], row["repeat"]
                    found.setdefault(cell, []).append((row[along], row["value"]))
        return found

    def values_after(self, user: str, interactions: int, name: str = OFFLINE) -> Values:
        """Of the last look that was not later than after so many interactions."""
        curves = self.curve(user, name)
        return {cell: [v for n, v in curve if n <= interactions][-1] for cell, curve in curves.items()}

    def mean_along(self, user: str, name: str) -> Values:
        """The mean over all interactions: of what rounds showed, or of a ranker at looks; refuses too few of these.

        Why online quality needs no number of looks: a look has the mean of all that was shown since the one before.
        """
        curves = self.curve(user, name)
        if name != ONLINE:
            check_looks(name, curves.values())
        return {cell: _mean_of_steps(curve) for cell, curve in curves.items()}

    @property
    def n_interactions(self) -> int:
        """Of one training."""
        user = self.users[0]
        return int(self.result["n_interactions"] / len(self.users) / len(self.values(user)))


def check_looks(name: str, curves: Iterable[Sequence[tuple[int, float]]]) -> None:
    """Refuse to call the last looks of a training its mean; the look before the first round does not count."""
    n_looks = min(sum(n > 0 for n, _ in curve) for curve in curves)
    if n_looks < LEAST_LOOKS:
        raise NotJudged(
            f"{name} was measured {n_looks} time{'' if n_looks == 1 else 's'} in a training, and its mean over the "
            f"training needs {LEAST_LOOKS} or more: run it with a smaller eval_every, or without."
        )


def _mean_of_steps(curve: Sequence[tuple[int, float]]) -> float:
    widths = [after - before for before, after in zip([0, *(n for n, _ in curve)], (n for n, _ in curve), strict=False)]
    return sum(width * value for width, (_, value) in zip(widths, curve, strict=True)) / sum(widths)


@dataclass(frozen=True, slots=True)
class Trials:
    """All trials of a reproduction."""

    finished: tuple[Finished, ...]

    @property
    def data(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(trial.cell["data"] for trial in self.finished))

    def users(self, data: str) -> tuple[str, ...]:
        return next(trial.users for trial in self.finished if trial.cell["data"] == data)

    def only(self, *names: str) -> tuple[str, ...]:
        """Those data sets whose names begin so; refuses to judge without any."""
        found = tuple(data for data in self.data if data.startswith(names))
        if not found:
            raise NotJudged(f"Not run on {' or '.join(names)}.")
        return found

    def find(self, **cell: object) -> Finished:
        """The one trial whose cell has these entries; one of a variant only where that is asked for."""
        wanted = {"variant": None, **cell}
        found = [t for t in self.finished if all(t.cell.get(key) == value for key, value in wanted.items())]
        if not found:
            raise NotJudged(f"Not run: {', '.join(f'{key}={value}' for key, value in cell.items())}.")
        (one,) = found
        return one

    def present(self, key: str, wanted: Iterable[str]) -> tuple[str, ...]:
        """Those of the wanted entries that some trial has; refuses to judge without any."""
        there = [trial.cell.get(key) for trial in self.finished]
        found = tuple(entry for entry in wanted if entry in there)
        if not found:
            raise NotJudged(f"Not run: {' or '.join(f'{key}={entry}' for entry in wanted)}.")
        return found


@dataclass(frozen=True, slots=True)
class PairTest:
    """What one test of a verdict found: n, difference and standard error are enough to repeat it."""

    pair: str
    test: str
    n: int  # pairs of values
    difference: float  # ours less theirs, mean
    standard_error: float  # of the difference
    p: float  # of this test alone
    p_corrected: float  # for the number of tests that were made at once: what is compared with the level
    level: float
    margin: float | None = None  # of a test for equality, or for not being lower


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim holds, and how that was found."""

    holds: bool
    p: float | None
    why: str
    p_refutes: bool = False  # whether a small p speaks against the claim, not for it
    tests: tuple[PairTest, ...] = ()  # also those that are only told

    def as_json(self) -> Json:
        """Of a finding, but for the claim."""
        tests = [asdict(test) for test in self.tests]
        return {"holds": self.holds, "p": self.p, "why": self.why, "tests": tests}


class NotJudged(Exception):  # noqa: N818 - not an error: what a claim is about was not run, or not often enough
    """Why a claim cannot be judged from these trials; p and tests where it held in part."""

    def __init__(self, why: str, p: float | None = None, tests: tuple[PairTest, ...] = ()) -> None:
        super().__init__(why)
        self.p, self.tests = p, tests

    def as_json(self) -> Json:
        tests = [asdict(test) for test in self.tests]
        return {"holds": None, "p": self.p, "why": str(self), "tests": tests}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sets of results that belong together."""

    name: str  # such as "perfect users"
    ours: Values
    theirs: Values

    def aligned(self) -> tuple[list[float], list[float]]:
        alone = sorted(self.ours.keys() ^ self.theirs.keys())
        if alone:
            raise ValueError(f"{self.name}: only one side has the trainings (fold, repeat) {alone}.")
        cells = sorted(self.ours)
        return [self.ours[cell] for cell in cells], [self.theirs[cell] for cell in cells]


def for_every_user(outcome: Trials, make: Callable[[str, str], Sequence[Pair]]) -> list[Pair]:
    """The pairs of every data set and user."""
    return [pair for data in outcome.data for user in outcome.users(data) for pair in make(data, user)]


def check_some(cases: Sequence[object]) -> None:
    """Refuse to judge without a case: what is said of every one would hold of none."""
    if not cases:
        raise NotJudged("Nothing that it is about was run.")


def keep_test(pair: Pair, test: str, p: float, *, level: float = LEVEL, margin: float | None = None) -> PairTest:
    """p: of this test alone."""
    differences = [ours - theirs for ours, theirs in zip(*pair.aligned(), strict=True)]
    n = len(differences)
    return PairTest(pair.name, test, n, fmean(differences), stdev(differences) / sqrt(n), p, p, level, margin)


def tell_tests(tests: Sequence[PairTest]) -> str:
    """Each pair with its difference and p."""
    return "; ".join(f"{test.pair} {test.difference:+.4f} (p {max(test.p_corrected, _LEAST):.2g})" for test in tests)


def all_better(pairs: Sequence[Pair], *, level: float = LEVEL) -> Verdict:
    """Ours higher in every pair: paired t-tests, two-tailed, p corrected for their number."""
    check_some(pairs)
    found = [paired_t_test(*pair.aligned()) for pair in pairs]
    corrected = bonferroni([test.p for test in found])
    kept = [keep_test(pair, "paired t-test", test.p, level=level) for pair, test in zip(pairs, found, strict=True)]
    tests = tuple(replace(test, p_corrected=p) for test, p in zip(kept, corrected, strict=True))
    holds = all(test.difference > 0 and test.p_corrected < level for test in tests)
    at = "" if level == LEVEL else f" at level {level:g}"
    return Verdict(holds, max(corrected), f"Paired t-tests{at}, corrected: {tell_tests(tests)}.", tests=tests)


def all_higher(cases: Sequence[tuple[str, Sequence[float], Sequence[float]]]) -> Verdict:
    """Ours higher in every (name, ours, theirs): Welch's tests of trainings, two-tailed, corrected for their number.

    Why not pairs: a number of rounds or steps belongs to a training, and trainings differ.
    """
    check_some(cases)
    if any(min(len(ours), len(theirs)) < 2 for _, ours, theirs in cases):
        raise NotJudged("One training alone: a test needs two or more.")
    found = [independent_t_test(ours, theirs) for _, ours, theirs in cases]
    corrected = bonferroni([test.p for test in found])
    tests = tuple(
        PairTest(
            name,
            "Welch's test",
            test.n,
            test.mean_difference,
            sqrt(sum(stdev(side) ** 2 / len(side) for side in sides)),
            test.p,
            p,
            LEVEL,
        )
        for (name, *sides), test, p in zip(cases, found, corrected, strict=True)
    )
    holds = all(test.difference > 0 and test.p_corrected < LEVEL for test in tests)
    return Verdict(holds, max(corrected), f"Welch's tests, corrected: {tell_tests(tests)}.", tests=tests)


def select_better(pairs: Sequence[Pair]) -> list[Pair]:
    """Those in which ours is significantly higher, by the tests of `all_better`."""
    tests = [paired_t_test(*pair.aligned()) for pair in pairs]
    corrected = bonferroni([test.p for test in tests])
    found = zip(pairs, tests, corrected, strict=True)
    return [pair for pair, test, p in found if test.mean_difference > 0 and p < LEVEL]


def most_better(pairs: Sequence[Pair]) -> Verdict:
    """Ours higher on average in most pairs, and in most pairs of a training: a one-sided t-test over trainings of the
    part of its pairs in which ours is higher, above one half.

    Why not a test of each: "in most cases" is said of cells, many of which differ by less than their spread. Why not
    over pairs: they share trainings, so that they are not independent.
    """
    check_some(pairs)
    aligned = [pair.aligned() for pair in pairs]
    gains = [fmean(ours) - fmean(theirs) for ours, theirs in aligned]
    trainings = sorted(set.intersection(*(set(pair.ours) for pair in pairs)))
    parts = [fmean(_score(pair.ours[each], pair.theirs[each]) for pair in pairs) for each in trainings]
    test = paired_t_test(parts, [0.5] * len(parts))
    p = test.p / 2 if test.mean_difference > 0 else 1 - test.p / 2
    n, n_higher = len(gains), sum(gain > 0 for gain in gains)
    words = [f"{pair.name} {gain:+.4f}" for pair, gain in zip(pairs, gains, strict=True)]
    why = f"Higher in {n_higher} of {n}; of a training in {fmean(parts):.0%}: {'; '.join(words)}."
    return Verdict(2 * n_higher > n and p < LEVEL, p, why)


def _score(ours: float, theirs: float) -> float:
    """1 where ours is higher, one half where both are equal."""
    return 0.5 if ours == theirs else float(ours > theirs)


def none_better(pairs: Sequence[Pair]) -> Verdict:
    """Ours significantly higher in no pair: what a text means by "not significantly better"; equality is not shown.

    Why p as they are: corrected for more pairs, they would make it easier to hold.
    """
    check_some(pairs)
    tests = tuple(keep_test(pair, "paired t-test", paired_t_test(*pair.aligned()).p) for pair in pairs)
    is_higher = [test.difference > 0 and test.p < LEVEL for test in tests]
    why = f"Paired t-tests, not corrected: {tell_tests(tests)}."
    return Verdict(not any(is_higher), min(test.p for test in tests), why, p_refutes=True, tests=tests)


def all_equal(pairs: Sequence[Pair], *, margin: float) -> Verdict:
    """Equal within the margin in every pair: two one-sided tests each; all must hold, so p is the largest."""
    check_some(pairs)
    ps = [equivalence_test(*pair.aligned(), margin=margin).p for pair in pairs]
    named = zip(pairs, ps, strict=True)
    tests = tuple(keep_test(pair, "two one-sided tests", p, margin=margin) for pair, p in named)
    why = f"Two one-sided tests within {margin:g}: {tell_tests(tests)}."
    return Verdict(max(ps) < LEVEL, max(ps), why, tests=tests)


def all_at_least(pairs: Sequence[Pair], *, margin: float) -> Verdict:
    """Ours lower by less than the margin in every pair: one-sided paired t-tests; p is the largest."""
    check_some(pairs)
    shifted = [paired_t_test([a + margin for a in ours], theirs) for ours, theirs in (pair.aligned() for pair in pairs)]
    ps = [test.p / 2 if test.mean_difference > 0 else 1 - test.p / 2 for test in shifted]
    named = zip(pairs, ps, strict=True)
    tests = tuple(keep_test(pair, "one-sided t-test", p, margin=margin) for pair, p in named)
    why = f"One-sided tests, lower by less than {margin:g}: {tell_tests(tests)}."
    return Verdict(max(ps) < LEVEL, max(ps), why, tests=tests)


def ordered(names_and_means: Sequence[tuple[str, float, float]]) -> Verdict:
    """Each first mean above the second: no test, for claims about cells with too few values for one."""
    check_some(names_and_means)
    words = [f"{name} {high:.4f} over {low:.4f}" for name, high, low in names_and_means]
    return Verdict(all(high > low for _, high, low in names_and_means), None, f"Means: {'; '.join(words)}.")


def by_fold(values: Values) -> Values:
    """The mean over repeats, as repeat 0: to stand beside what is trained once per fold."""
    folds = sorted({fold for fold, _ in values})
    return {(fold, 0): fmean(v for (f, _), v in values.items() if f == fold) for fold in folds}


def both(first: Verdict, second: Verdict) -> Verdict:
    """p is the larger; one that speaks against a part is left out, for there a large one is what the part claims."""
    known = [part.p for part in (first, second) if part.p is not None and not part.p_refutes]
    why, tests = f"{first.why} {second.why}".strip(), (*first.tests, *second.tests)
    return Verdict(first.holds and second.holds, max(known, default=None), why, tests=tests)
