"""Table 2 of [foltr-es]: how much one privatised MaxRR really betrays, beside the bound of Equation 10.

Nothing is drawn: every placement of grades in a list is taken, so the numbers are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hushrank.clicks.named import cascade_user
from hushrank.files import Json
from hushrank.metrics.max_rr import max_rr_distribution
from hushrank.privacy.enumeration import empirical_epsilon, enumerate_grades
from hushrank.privacy.placement import Adjacency
from hushrank.privacy.randomised_response import epsilon_bound
from hushrank.reproduce.literature import find_result
from hushrank.reproduce.verdicts import Verdict

NAME = "foltr-es.table2"
PUBLISHED_LENGTH = 5
N_GRADES = 3
CLOSE, FAR = 0.9, 0.75  # Why: shares of the bound; the paper says "close" and "very far" without a number

Epsilons = Mapping[tuple[str, float], float]  # {(clicks, p): epsilon}


def make_table(*, length: int = PUBLISHED_LENGTH) -> Json:
    """The table as JSON, for lists of `length` documents; published numbers exist for five."""
    published = find_result(NAME)
    cells = [(str(row.cell["clicks"]), float(row.cell["p"])) for row in published.rows]
    ours = measure_epsilons(cells, length=length)
    printed = [row.published if length == PUBLISHED_LENGTH else None for row in published.rows]
    rows = [
        {"clicks": clicks, "p": p, "ours": ours[clicks, p], "published": theirs}
        for (clicks, p), theirs in zip(cells, printed, strict=True)
    ]
    return {
        "name": NAME,
        "length": length,
        "n_values": length + 1,
        "adjacency": str(Adjacency.replace_one),
        "rows": rows,
        "findings": [_judge(claim.id, claim.claim, claim.where, ours, length) for claim in published.findings],
    }


def measure_epsilons(cells: list[tuple[str, float]], *, length: int) -> Epsilons:
    """The epsilon of each user and p, over all lists of this length."""
    lists = enumerate_grades(length, n_grades=N_GRADES)
    users = {clicks: cascade_user(clicks, N_GRADES).as_table(length) for clicks, _ in cells}
    rewards = {clicks: max_rr_distribution(lists, table, k=length) for clicks, table in users.items()}
    return {(clicks, p): empirical_epsilon(rewards[clicks], p=p) for clicks, p in cells}


def _judge(id: str, claim: str, where: str, ours: Epsilons, length: int) -> Json:
    return {"id": id, "claim": claim, "where": where, **FINDINGS[id](ours, length).as_json()}


def _shares(ours: Epsilons, length: int, clicks: str) -> list[float]:
    """Epsilon over its bound, for each p."""
    return [epsilon / epsilon_bound(p, length + 1) for (user, p), epsilon in ours.items() if user == clicks]


def _reaches_bound(ours: Epsilons, length: int) -> Verdict:
    shares = _shares(ours, length, "perfect")
    return Verdict(all(abs(share - 1) < 1e-9 for share in shares), None, "Exact, by enumeration.")


def _is_close(ours: Epsilons, length: int) -> Verdict:
    lowest = min(_shares(ours, length, "navigational"))
    return Verdict(lowest >= CLOSE, None, f"At least {lowest:.0%} of the bound at every p; close is {CLOSE:.0%}.")


def _is_far(ours: Epsilons, length: int) -> Verdict:
    highest = max(_shares(ours, length, "informational"))
    return Verdict(highest <= FAR, None, f"At most {highest:.0%} of the bound at every p; far is {FAR:.0%}.")


FINDINGS: Mapping[str, Callable[[Epsilons, int], Verdict]] = {  # by the claim's id
    "perfect-reaches-the-bound": _reaches_bound,
    "navigational-near-the-bound": _is_close,
    "informational-far-below-the-bound": _is_far,
}
