"""Six planted bugs are found, and no sound setting is accused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.audit import audit_sound, list_cases, list_turns
from benchmarks.planted_bugs import BUGS, CLIP_NORM, CONFIDENCE, PlantedBug, audit_bug, trial_of
from hushrank.audit.audit import AuditOptions, audit_trial
from hushrank.audit.updates import UpdateTrial
from hushrank.federation.cohort import Population
from hushrank.privacy.accounting import Training, training_epsilon
from hushrank.privacy.correlated import CorrelatedGaussian
from hushrank.privacy.gaussian import SoundGaussian

RUNS = 200_000  # half of those of the documentation
CASES = [*list_cases(), *list_turns()]
EACH = 1 - (1 - CONFIDENCE) / len(CASES)  # Bonferroni: with fresh seeds one of all cases is accused once in 1,000 times


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: PlantedBug) -> None:
    found = audit_bug(bug, runs=RUNS, seed=2)
    assert found.claim == pytest.approx(2.0, abs=0.002) and found.is_above


class HalfTakenBack(CorrelatedGaussian):
    """Draws half of the fresh noise that it claims."""

    __slots__ = ()

    @property
    def _fresh_variance(self) -> int:
        return CorrelatedGaussian._fresh_variance.fget(self) // 4  # type: ignore[attr-defined]


def test_correlated_noise_is_audited_through_what_later_rounds_take_back() -> None:
    """Two answers, each seen in five rounds: bounds near the claim if it is kept, and above it if half is missing."""
    population = Population(10, (1,), cohort=2, sampling="rotation")
    claimed = Training("gaussian", 2.0, 10, scheme="rotation", separation=5)
    found = []
    for made in (CorrelatedGaussian, HalfTakenBack):
        trial = UpdateTrial(made(CLIP_NORM, 2.0, separation=5), population, "zero-out", 10)
        look = audit_trial(
            trial,
            lambda rounds: training_epsilon(replace(claimed, rounds=rounds), delta=1e-5),
            delta=1e-5,
            options=AuditOptions(runs=40_000, seed=3),
        )[-1]
        found.append(look)
    assert 0.4 * found[0].claim < found[0].bound.epsilon < found[0].claim and not found[0].is_above
    assert found[1].is_above


def test_the_same_federation_without_a_bug_is_not_accused() -> None:
    sound = replace(BUGS[0], make=lambda noise: trial_of(SoundGaussian(CLIP_NORM, noise)))
    found = audit_bug(sound, runs=RUNS, seed=2)
    assert 0.4 * found.claim < found.bound.epsilon < found.claim
    assert found.bound.epsilon_if_normal is not None
    assert 0.9 * found.claim < found.bound.epsilon_if_normal < found.claim


@pytest.mark.parametrize(("sampling", "keys"), CASES, ids=lambda part: part if isinstance(part, str) else "-".join(
    str(part[name]) for name in ("mechanism", "noise_at", "adjacency")
))  # fmt: skip
def test_no_sound_setting_is_accused(sampling: str, keys: dict[str, Any]) -> None:
    found = audit_sound(keys, runs=4000, confidence=EACH)
    assert not found["is_above_claim"] and found["relation"] == keys["adjacency"]
    assert found["sampling"] in ("everybody", "fixed", "poisson", "rotation") and sampling
