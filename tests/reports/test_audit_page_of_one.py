"""The page of an audit, with one round and with many, refuted and not."""

from __future__ import annotations

from typing import Any

import pytest

from hushrank.reports.audit import render_audit, summarise_audit


def audited(rounds: tuple[int, ...], *, bound: float, normal: float | None = None) -> dict[str, Any]:
    looks = [
        {"rounds": n, "claimed_epsilon": 1.0 * n, "lower_bound": bound * n, "lower_bound_if_normal": normal}
        for n in rounds
    ]
    about = {"recipe": "fpdgd", "privacy": "sound", "mechanism": "gaussian", "noise_at": "server", "clients": 10}
    how = {"cohort": 10, "sampling": "everybody", "relation": "zero-out", "delta": None, "estimator": "runs", "seed": 1}
    counts = {"runs_with_canary": 5000, "events_with_canary": 7}
    last = {**looks[-1], "is_above_claim": bound > 1, "counts": counts, "confidence": 0.999}
    return {**about, **how, **last, "looks": looks}


@pytest.mark.parametrize("rounds", [(1,), (1, 2, 10)])
def test_a_page_has_the_chart_the_numbers_and_what_was_audited(rounds: tuple[int, ...]) -> None:
    page = render_audit(audited(rounds, bound=0.7))
    assert "<svg" in page and "if the noise is normal" not in page and "none: pure epsilon" in page
    assert "except once in 1,000 audits" in page and "runs with canary" in page
    assert page.count('scope="row"') == len(rounds)


def test_the_outcome_says_whether_the_claim_stands() -> None:
    assert summarise_audit(audited((1,), bound=0.7)).endswith("Nothing speaks against the claim.")
    said = summarise_audit(audited((1, 4), bound=1.2))
    assert "Claimed for 4 rounds: epsilon 4 (zero-out)." in said and "The claim is refuted" in said


def test_a_bound_for_normal_noise_is_a_line_of_its_own() -> None:
    assert "if the noise is normal" in render_audit(audited((1, 2), bound=0.5, normal=0.9))
