"""What can spoil an experiment in silence, found in what a run has recorded: pure functions, one per finding.

They take arrays of trainings (cells) and return notices, each a sentence and what to do. What is about data stands in
`data/notices.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np

from hushrank.aggregation.named import CheckedRule
from hushrank.types import Array, Notice, QuerySet

RARELY = 0.01  # share of searches with a click below which next to nothing is learnt
_SURE = 0.999  # probability of the first place from which on a list is as good as fixed
_MOST = 0.9  # share of the queries whose lists are
_FALL = 0.02  # of nDCG@10 on validation queries: less is not worth a word
_MANY, _WIDE = 9, 3  # looks from which on so many neighbours are averaged
_FEW = 4  # looks below which there is no usual change
_STEPS = 3.0  # usual changes from look to look that a fall must exceed, too
_ERRORS = 2.0  # standard errors that a fall must exceed, too, where several trainings show it


def notice_rule(rule: CheckedRule, *, n_asked: int) -> list[Notice]:
    """A rule below the number of clients from which on its paper proves something, or from which on it judges them."""
    return [*notice_unproven(rule, n_asked=n_asked), *notice_unjudged(rule, n_asked=n_asked)]


def notice_unproven(rule: CheckedRule, *, n_asked: int) -> list[Notice]:
    if n_asked >= rule.n_proven:
        return []
    sentence = (
        f"aggregation={rule.name} is proven to work with {rule.assumed_malicious} malicious clients from "
        f"{rule.n_proven} clients on; here {n_asked} are asked in a round."
    )
    return [Notice("rule-unproven", sentence, "It runs all the same. Ask more clients, or lower assumed_malicious.")]


def notice_unjudged(rule: CheckedRule, *, n_asked: int) -> list[Notice]:
    if n_asked >= rule.n_judged:
        return []
    sentence = (
        f"aggregation={rule.name} judges nobody in a round of fewer than {rule.n_judged} clients; here {n_asked} are "
        "asked in a round, so that liars count as everybody does."
    )
    return [Notice("rule-idle", sentence, "It runs as the mean does. Ask more clients, or choose another rule.")]


def notice_clicks(shares: Mapping[str, float], *, n_searches: int) -> list[Notice]:
    """Users who click next to never; shares: {user: of trial searches with a click}."""
    silent = {user: share for user, share in shares.items() if share < RARELY}
    if not silent:
        return []
    counts = ", ".join(f"{round(share * n_searches)} under {user}" for user, share in silent.items())
    sentence = f"Of {n_searches:,} trial searches with the first ranker, next to none had a click: {counts}."
    advice = "Clicks are all that is learnt from: check the grades of the data, and clicks or the click tables."
    return [Notice("no-clicks", sentence, advice)]


def notice_logged_clicks(share: float, *, n_impressions: int) -> list[Notice]:
    """A log in which next to nothing was clicked."""
    if share >= RARELY:
        return []
    sentence = f"Of the log's {n_impressions:,} lists {round(share * n_impressions):,} were clicked on."
    return [Notice("no-clicks", sentence, "Clicks are all that is learnt from: check how the log was written.")]


def notice_unmoved(has_moved: Sequence[bool], quality_has_moved: Sequence[bool]) -> list[Notice]:
    """Trainings that ended where they began: the weights [n_cells], or only the quality [n_cells] of their lists."""
    still = sum(not moved for moved in has_moved)
    equal = sum(moved and not better for moved, better in zip(has_moved, quality_has_moved, strict=True))
    advice = "Check that people click, learning_rate and server_rate, and rounds_lost in result.json."
    found = []
    if still:
        sentence = f"The ranker did not move {_among(still, len(has_moved))}: its weights are the first ones."
        found.append(Notice("ranker-still", sentence, advice))
    if equal:
        sentence = (
            f"The ranker is as good as the first one, to the last digit, {_among(equal, len(has_moved))}, though "
            "its weights moved."
        )
        found.append(Notice("quality-still", sentence, advice))
    return found


def notice_scores(shares: Sequence[float], largest: float, *, has_liars: bool = False) -> list[Notice]:
    """Scores so far apart that sampling changes nothing; shares: [n_cells] of queries whose first place is fixed.

    has_liars: whether malicious clients send what they like.
    """
    fixed = sum(share >= _MOST for share in shares)
    if not fixed:
        return []
    sentence = (
        f"Scores have grown so far apart (the largest is {largest:.2g}) that sampling shows the same lists again and "
        f"again {_among(fixed, len(shares))}: nothing new is tried."
    )
    advice = "Normalise the features (--set normalise=query-minmax), or lower learning_rate or server_rate."
    lied = "The attack may have done this: compare a run with n_malicious=0, or choose a rule that withstands it. "
    return [Notice("fixed-lists", sentence, f"{lied}Otherwise n{advice[1:]}" if has_liars else advice)]


def share_of_fixed_lists(queries: QuerySet, scores: Array) -> float:
    """The share of queries whose first place is as good as certain under Plackett-Luce sampling.

    scores: [n_documents]. Documents with the highest score share the first place; a query whose scores are all equal
    is left out.
    """
    values, starts = scores.astype(np.float64), queries.starts[:-1]
    best, worst = np.maximum.reduceat(values, starts), np.minimum.reduceat(values, starts)
    own = np.repeat(best, queries.lengths)
    chance = np.add.reduceat(values == own, starts, dtype=np.float64) / np.add.reduceat(np.exp(values - own), starts)
    is_varied = worst < best
    return float(np.mean(chance[is_varied] > _SURE)) if is_varied.any() else 0.0


def notice_fall(curves: Mapping[str, Array]) -> list[Notice]:
    """Users under whom the last ranker is clearly worse than an earlier one; {user: [n_cells, n_looks] validation}."""
    fallen = {user: found for user, looks in curves.items() if (found := _fall(looks)) is not None}
    if not fallen:
        return []
    parts = [f"from {best:.3f} to {last:.3f} under {user}" for user, (best, last) in fallen.items()]
    sentence = f"Quality on validation queries fell after its best look: {', '.join(parts)}."
    advice = "Stop earlier (fewer rounds), lower learning_rate or server_rate, or set server_fade=true."
    return [Notice("quality-fell", sentence, advice)]


def _fall(looks: Array) -> tuple[float, float] | None:
    """(best, last) mean over trainings, where the difference is more than noise."""
    if looks.shape[1] < 2 or not np.isfinite(looks).all():
        return None
    wide = _WIDE if looks.shape[1] >= _MANY else 1  # Why: the best of many single looks is high by chance
    means = np.lib.stride_tricks.sliding_window_view(looks, wide, axis=1).mean(axis=2)
    curve = means.mean(axis=0)
    best = int(np.argmax(curve))
    falls = means[:, best] - means[:, -1]
    n, mean = len(falls), float(falls.mean())
    error = float(falls.std(ddof=1)) / sqrt(n) if n > 1 else 0.0
    step = float(np.median(np.abs(np.diff(looks.mean(axis=0))))) if looks.shape[1] >= _FEW else 0.0
    is_clear = mean > max(_FALL, _ERRORS * error, _STEPS * step)
    return (float(curve[best]), float(curve[-1])) if is_clear else None


def _among(n: int, whole: int) -> str:
    return "in every training" if n == whole else f"in {n} of {whole} trainings"
