"""What a verdict says: its numbers, its margin, and which of two comes first."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import t as student

from hushrank.reproduce.papers import foltr_es, fpdgd, study
from hushrank.reproduce.verdicts import (
    OFFLINE,
    ONLINE,
    Finished,
    NotJudged,
    Pair,
    Trials,
    all_at_least,
    all_better,
    all_equal,
    both,
    most_better,
    ordered,
)

USERS = ("perfect", "navigational", "informational")
Curve = Mapping[int, float]  # {interactions: value}


def finish(place: Path, cell: dict[str, Any], curve: Curve, metric: str, *, n_repeats: int = 4) -> Finished:
    """A trial whose users and repeats all have this curve, each repeat .001 above the one before."""
    place.mkdir(parents=True)
    repeats = {repeat: {n: value + 0.001 * repeat for n, value in curve.items()} for repeat in range(n_repeats)}
    rows = [
        {"click": user, "fold": 1, "repeat": repeat, "name": metric, "interactions": n, "value": value}
        for user in USERS
        for repeat, values in repeats.items()
        for n, value in values.items()
    ]
    (place / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    last = [{"fold": 1, "repeat": r, "value": list(values.values())[-1]} for r, values in repeats.items()]
    found = {"mean": last[0]["value"], "std": None, "values": last}
    metrics = {user: {metric: found, OFFLINE: found} for user in USERS}
    n_interactions = max(curve) * n_repeats * len(USERS)
    return Finished(
        {"data": "mq2008", **cell},
        place,
        {"recipe": {"clicks": list(USERS)}, "metrics": metrics, "n_interactions": n_interactions},
    )


def rerun_figure_3(place: Path, ours: Curve) -> Trials:
    """The study's Figure 3: PDGD's curve beside two rankers of FOLtR-ES, which have `ours`."""
    trials = [finish(place / "pdgd", {"method": "pdgd", "batch": 8000}, {0: 0.2, 100: 0.45, 1000: 0.5}, foltr_es.TEST)]
    for ranker in foltr_es.RANKERS:
        trials.append(finish(place / ranker, {"method": "foltr-es", "ranker": ranker}, ours, foltr_es.TEST))
    return Trials(tuple(trials))


def test_the_leads_are_told_as_they_are(tmp_path: Path) -> None:
    caught = study.pdgd_faster_then_caught(rerun_figure_3(tmp_path / "a", {0: 0.2, 100: 0.4, 1000: 0.52}))
    assert caught.holds and "In 6 of 6 cases above 0 and then smaller." in caught.why
    assert "PDGD's lead after 10% of the interactions, then at the end" in caught.why
    assert "mq2008 perfect linear +0.0500, then -0.0200" in caught.why  # passed by, and the text says by how much
    ahead = study.pdgd_faster_then_caught(rerun_figure_3(tmp_path / "b", {0: 0.2, 100: 0.44, 1000: 0.48}))
    assert not ahead.holds and "perfect mlp +0.0100, then +0.0200" in ahead.why
    behind = study.pdgd_faster_then_caught(rerun_figure_3(tmp_path / "c", {0: 0.2, 100: 0.46, 1000: 0.6}))
    assert not behind.holds and "-0.0100, then -0.1000" in behind.why


def test_early_and_late_are_told_apart(tmp_path: Path) -> None:
    curves = {0.15: {0: 0.2, 100: 0.3, 1000: 0.4}, 1.0: {0: 0.2, 100: 0.33, 1000: 0.45}}
    outcome = Trials(tuple(finish(tmp_path / f"{p}", {"p": p}, curve, foltr_es.VALI) for p, curve in curves.items()))
    why = foltr_es.higher_p_better(outcome).why
    assert "mq2008 perfect p=1.0 over p=0.15 at the end +0.0500" in why
    assert "mq2008 perfect p=1.0 over p=0.15 after 10% +0.0300" in why


def test_the_margin_to_the_best_baseline_is_told(tmp_path: Path) -> None:
    def rerun(name: str, ours: float) -> Trials:
        cells = {"foltr-es": ours, "mse": 0.69, "ranking-svm": 0.7}
        return Trials(
            tuple(
                finish(
                    tmp_path / name / method,
                    {"method": method, "ranker": "mlp"},
                    {10: value},
                    foltr_es.TRAIN,
                    n_repeats=1,
                )
                for method, value in cells.items()
            )
        )

    near, far = (foltr_es.best_baseline_reached_informational(rerun(n, v)) for n, v in (("near", 0.695), ("far", 0.68)))
    assert near.holds and not far.holds
    assert near.why == "Ours beside the better baseline, lower by less than 0.01: mq2008 fold 1 0.6950 beside 0.7000."


def finish_folds(cell: dict[str, Any], above: Sequence[float], noise: Sequence[float]) -> Finished:
    """A trial on one data set, .5 and so much above in each of the six cases of user and split, five folds."""
    cases = iter(above)
    metrics = {
        user: {metric: {"values": fold_values(0.5 + next(cases), noise)} for metric in (foltr_es.TRAIN, foltr_es.TEST)}
        for user in USERS
    }
    return Finished({"data": "mq2008", **cell}, Path(), {"recipe": {"clicks": list(USERS)}, "metrics": metrics})


def fold_values(level: float, noise: Sequence[float]) -> list[dict[str, Any]]:
    return [{"fold": fold, "repeat": 0, "value": level + more} for fold, more in enumerate(noise)]


@pytest.mark.parametrize(
    ("above", "holds"),
    [
        ((0, 0, 0, 0, 0, 0), True),
        ((0.1, 0, 0, 0, 0, 0), True),  # 1 of 6 differs, as 2 of 12 and so fewer than 3; none is below
        ((-0.1, 0, 0, 0, 0, 0), False),  # 1 of 6 is below, as 2 of 12 and so more than 1
        ((0.1, 0.1, 0, 0, 0, 0), False),  # 2 of 6 differ, as 4 of 12 and so more than 3
    ],
)
def test_three_of_twelve_and_one_of_twelve_are_shares(above: Sequence[float], holds: bool) -> None:
    noise = (0.01, -0.01, 0.02, -0.02, 0.0)  # over the folds 0 on average, so that it alone is no difference
    two_layer = finish_folds({"method": "foltr-es", "ranker": "mlp"}, above, noise)
    svm = finish_folds({"method": "ranking-svm"}, (0,) * 6, (0,) * 5)
    assert foltr_es.two_layer_near_ranking_svm(Trials((two_layer, svm))).holds is holds


def test_what_is_said_of_every_case_is_not_said_of_none() -> None:
    for judge in (all_better, partial(all_equal, margin=0.1), partial(all_at_least, margin=0.1), ordered):
        with pytest.raises(NotJudged, match="Nothing that it is about was run"):
            judge([])


def test_the_mean_over_a_training_is_not_that_of_a_few_looks(tmp_path: Path) -> None:
    """From 0 to .9 in ten equal steps of 100 searches: (.0 + .1 + ... + .9) / 10 = .45."""
    rising = {0: 0.0} | {100 * look: 0.1 * (look - 1) for look in range(1, 11)}
    found = finish(tmp_path / "ten", {}, rising, OFFLINE).mean_along("perfect", OFFLINE)
    assert found == pytest.approx({(1, repeat): 0.45 + 0.001 * repeat for repeat in range(4)})
    last = finish(tmp_path / "one", {}, {0: 0.0, 1000: 0.9}, OFFLINE)
    with pytest.raises(NotJudged, match=r"nDCG@10 was measured 1 time in a training, .* 10 or more: .* eval_every"):
        last.mean_along("perfect", OFFLINE)


def test_what_rounds_showed_is_known_from_one_look(tmp_path: Path) -> None:
    """A look has the mean over all searches since the one before: (.2 * 100 + .5 * 900) / 1000 = .47."""
    shown = finish(tmp_path / "two", {}, {100: 0.2, 1000: 0.5}, ONLINE).mean_along("perfect", ONLINE)
    assert shown[1, 0] == pytest.approx(0.47)


def test_a_verdict_keeps_what_repeats_each_of_its_tests() -> None:
    users = {(11, user): value for user, value in enumerate((0.1, 0.2, 0.3, 0.6))}
    lower = {place: value - 0.1 for place, value in users.items()}
    pairs = [Pair("a", users, lower), Pair("b", users, {**users, (11, 0): 0.0, (11, 3): 0.5})]
    better = all_better(pairs, level=0.001)
    assert better.why.startswith("Paired t-tests at level 0.001, corrected: a +0.1000 (p ")
    b = better.tests[1]
    assert (b.pair, b.n, b.level) == ("b", 4, 0.001) and b.difference == pytest.approx(0.05)
    assert b.standard_error == pytest.approx(0.0577350 / 4**0.5, abs=1e-6)  # .1, 0, 0 and .1: their spread is .0577
    t = b.difference / b.standard_error
    assert b.p == pytest.approx(2 * student.sf(t, b.n - 1)) and b.p_corrected == min(1, 2 * b.p)
    for verdict in (all_equal(pairs[1:], margin=0.2), all_at_least(pairs[1:], margin=0.2)):
        (test,) = verdict.tests
        assert test.p == verdict.p and test.margin == 0.2 and f"b +0.0500 (p {test.p:.2g})" in verdict.why
    equal = all_equal(pairs[1:], margin=0.2)
    assert equal.p == pytest.approx(student.cdf((0.05 - 0.2) / b.standard_error, 3))  # the nearer side
    assert both(better, equal).tests == (*better.tests, *equal.tests)
    assert json.loads(json.dumps(better.as_json()))["tests"][0]["pair"] == "a"


def test_one_repeat_has_no_instability() -> None:
    with pytest.raises(NotJudged, match="two repeats or more"):
        study.spread_within_folds({(1, 0): 0.5, (2, 0): 0.6})
    assert study.spread_within_folds({(1, 0): 0.5, (1, 1): 0.5}) == 0


def test_a_comparison_names_both_sides_in_their_order(tmp_path: Path) -> None:
    trials = [
        finish(tmp_path / f"{b}", {"interactions": b}, {10: v, 100: v}, OFFLINE)
        for b, v in ((2, 0.6), (4, 0.6), (8, 0.5))
    ]
    early = fpdgd.small_batch_better_early(Trials(tuple(trials)))
    assert early.holds and "mq2008 perfect B=2 over 8 after 10% +0.1000" in early.why
    late = fpdgd.larger_batch_better(Trials(tuple(trials)))
    assert not late.holds and "mq2008 perfect B=8 over 2 after 100% -0.1000" in late.why
    assert re.search(r"\(p [\d.e-]+\)", late.why)


def test_two_sides_of_other_trainings_are_not_compared() -> None:
    one, two = {(1, 0): 0.5, (1, 1): 0.6}, {(1, 0): 0.5, (1, 1): 0.6, (2, 0): 0.7}
    for ours, theirs in ((one, two), (two, one)):
        with pytest.raises(
            ValueError, match=r"^users: only one side has the trainings \(fold, repeat\) \[\(2, 0\)\]\.$"
        ):
            Pair("users", ours, theirs).aligned()


def test_most_are_better_where_trainings_agree() -> None:
    """Pairs share trainings: five pairs of one lucky training are no evidence, five trainings that agree are."""

    def pairs(n: int, gain: Callable[[int, int], float]) -> list[Pair]:
        cells = [(1, repeat) for repeat in range(5)]
        return [Pair(f"{i}", {cell: gain(i, cell[1]) for cell in cells}, dict.fromkeys(cells, 0.0)) for i in range(n)]

    every = most_better(pairs(5, lambda i, repeat: -0.01 if i == repeat else 0.1))
    assert every.holds and "Higher in 5 of 5; of a training in 80%: 0 +0.0780;" in every.why
    lucky = most_better(pairs(20, lambda _, repeat: 1.0 if repeat == 0 else -0.01))
    assert "Higher in 20 of 20" in lucky.why and not lucky.holds and lucky.p is not None and lucky.p > 0.5
    half = most_better(pairs(6, lambda i, repeat: 0.1 if (i + repeat) % 2 else -0.1))
    assert not half.holds
    assert not most_better(pairs(5, lambda *_: 0.0)).holds
    with pytest.raises(NotJudged):
        most_better([])
