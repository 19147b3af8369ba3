"""What docs/findings.md says of clients that differ [thesis, Chapter 4], in sentences that follow from kept results.

A difference has the p of its claim's test. The words of a sentence follow from these (docs/told.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from measured_chapter4 import OFFLINE, list_parts
from tables import Row, Tables
from told import Case, tell_cases, tell_span

from hushrank.look.numbers import format_p, format_signed, format_value
from hushrank.reproduce.papers.thesis_skew import LITTLE
from hushrank.reproduce.verdicts import LEVEL

OWN = "personal/nDCG@10"
_CASE = re.compile(r"(perfect|navigational|informational)[^;]*? ([+-]\d+\.\d+)(?: \(p ([\d.e+-]+)\))?(?=; |\.(?: |$))")
SHORT = {"three-grades": "MQ2008", "mslr-like": "`mslr-like`, five grades", "intents": "`intent-change-like`"}


def find(data: Path, figure: str) -> dict[str, dict[str, Any]]:
    """{part: result}"""
    return {part: result for part, result in list_parts(data) if result["name"] == f"thesis.{figure}"}


def name_part(part: str) -> str:
    """`MQ2008, linear rankers`"""
    where = SHORT[part.removesuffix("-network")]
    return f"{where}, {'networks' if part.endswith('-network') else 'linear rankers'}"


def count_trainings(result: Mapping[str, Any]) -> str:
    return f"{max(row['n'] for row in result['rows'])} trainings"


def find_claim(result: Mapping[str, Any], name: str) -> Row:
    found: Row = next(claim for claim in result["findings"] if claim["id"] == name)
    return found


def read_cases(claim: Row, begin: str = "", end: str = "$") -> list[tuple[str, Case]]:
    """(user, (difference, p)) of every comparison that a reason has between two words; p is None where not told."""
    found = re.search(f"{re.escape(begin)}(.*?){end if end == '$' else re.escape(end)}", claim["why"])
    cases = _CASE.findall(found[1]) if found else []
    return [(user, (float(gap), float(p) if p else None)) for user, gap, p in cases]


def values_of(result: Mapping[str, Any], metric: str = OFFLINE, **cell: object) -> Iterator[tuple[Row, float]]:
    for row in result["rows"]:
        if row["metric"] == metric and row["ours"] is not None and all(row.get(k) == v for k, v in cell.items()):
            yield row, row["ours"]


def losses(
    result: Mapping[str, Any], control: Mapping[str, object], other: Mapping[str, object], metric: str = OFFLINE
) -> dict[str, list[float]]:
    """{user: differences of clients that differ from the control, where both have the same number of searches}"""
    found: dict[str, list[float]] = {}
    for row, ours in values_of(result, metric, **other):
        same = {key: row[key] for key in ("clicks", "interactions") if key in row}
        for _, theirs in values_of(result, metric, **control, **same):
            found.setdefault(row["clicks"], []).append(ours - theirs)
    return found


def flat(found: Mapping[str, Sequence[float]]) -> list[float]:
    return [value for values in found.values() for value in values]


def said(lines: Sequence[str]) -> str:
    return " ".join(filter(None, lines))


def tell_equal(claim: Row) -> str:
    """Whether equality within the margin is shown for all users."""
    p = "" if claim["p"] is None else f" (p\u00a0{format_p(claim['p'])})"
    is_shown = claim["holds"] or (claim["holds"] is None and claim["p"] is not None and claim["p"] < LEVEL)
    within = format_value(LITTLE, decimals=3)
    return f'"within {within}" is {"shown" if is_shown else "not shown"} for all users{p}'


def tell_intents(data: Path) -> list[str]:
    """{part: how clients with intents stand beside their control}, by three ways of judging both."""
    lines = []
    for part, result in find(data, "figure4.3").items():
        claim = find_claim(result, "intents-hurt")
        published, own, union = (
            dict(read_cases(claim, *between))
            for between in (
                ("As published: ", "$"),
                ("Own labels for both: ", " As published"),
                ("Union for both: ", " Own"),
            )
        )
        lines.append(
            f"{name_part(part)[0]}{name_part(part)[1:]} ({count_trainings(result)}): measured like this they are "
            f"{tell_cases(turn(published), 'the control')}; by the clients' own labels they are "
            f"{tell_cases(turn(own), 'the control')}; by the union of labels for both they are "
            f"{tell_cases(turn(union), 'the control')}."
        )
    return lines


def turn(cases: Mapping[str, Case]) -> dict[str, Case]:
    """Clients that differ less the control, where the claim has the control less them."""
    return {user: (-difference, p) for user, (difference, p) in cases.items()}


def is_of_labels(data: Path) -> bool:
    """Whether every published gap is shown, and none by own labels."""
    claims = [find_claim(result, "intents-hurt") for result in find(data, "figure4.3").values()]
    own = [case for claim in claims for _, case in read_cases(claim, "Own labels for both: ", " As published")]
    published = [case for claim in claims for _, case in read_cases(claim, "As published: ")]
    return all(is_above(case) for case in published) and not any(map(is_above, own))


def is_above(case: Case) -> bool:
    return case[0] > 0 and case[1] is not None and case[1] < LEVEL


def tell_fedprox(data: Path) -> str:
    """What FedProx and FedPer bring clients with intents."""
    lines = []
    for part, result in find(data, "figure4.4").items():
        few = tell_mus(result, lambda mu: mu <= 1)
        lines.append(
            f"FedProx ({name_part(part)}, {count_trainings(result)}) changes the quality by own labels by {few} up to "
            f"mu = 1 and by {tell_mus(result, lambda mu: mu > 1)} at mu = 10."
        )
        if fedper := flat(losses(result, {"remedy": "none", "distribution": "non-iid"}, {"remedy": "fedper"}, OWN)):
            lines.append(f"FedPer changes it by {tell_span(fedper)}.")
    if "intents-network" not in find(data, "figure4.4"):
        lines.append("With networks FedProx and FedPer were not run.")
    return said(lines)


def tell_mus(result: Mapping[str, Any], chosen: Any) -> str:
    mus = {row["mu"] for row in result["rows"] if "mu" in row and chosen(row["mu"])}
    plain = {"remedy": "none", "distribution": "non-iid"}
    return tell_span([gap for mu in mus for gap in flat(losses(result, plain, {"remedy": "fedprox", "mu": mu}, OWN))])


def tell_one_label(data: Path) -> str:
    """How far rankers end below their control, and how far above the one before the first round."""
    iid, skewed = ({"distribution": each} for each in ("iid", "non-iid"))
    lines = []
    for part, result in find(data, "figure4.5").items():
        claim = find_claim(result, "one-label-hurts")
        begin = "Over the ranker before the first round"
        gained = re.findall(rf"{begin} \(([+-][\d.]+) on average", claim["why"])
        learnt = [case for _, case in read_cases(claim, begin)]
        over = (
            f"over the first ranker {format_signed(float(gained[0]))} on average, significantly above it in "
            f"{sum(map(is_above, learnt))} of {len(learnt)} cases without correction; "
            if gained
            else ""
        )
        lines.append(
            f"    - {name_part(part)} ({count_trainings(result)}): {tell_span(flat(losses(result, iid, skewed)))} to "
            f"the control; {over}{tell_spreads(result)}; B = 10 over B = 2 {tell_steps(result)}."
        )
    return "\n".join(lines)


def tell_spreads(result: Mapping[str, Any]) -> str:
    spreads = [fmean(row["std"] for row, _ in values_of(result, distribution=each)) for each in ("non-iid", "iid")]
    return f"spread over trainings {format_value(spreads[0])}, of the control {format_value(spreads[1])}"


def tell_steps(result: Mapping[str, Any]) -> str:
    many, few = ({"distribution": "non-iid", "interactions": b} for b in (10, 2))
    pairs = [
        ours - theirs
        for row, ours in values_of(result, **many)
        for _, theirs in values_of(result, **few, clicks=row["clicks"])
    ]
    return tell_span(pairs)


def tell_two_labels(data: Path) -> str:
    lines = []
    for part, result in find(data, "figure4.6").items():
        near, above = (find_claim(result, each) for each in ("two-labels-near-iid", "two-labels-above-one"))
        each = {user: values[0] for user, values in two_labels(result).items()}
        apart = ", ".join(f"{user} {format_signed(gap)}" for user, gap in each.items())
        gained = [gap for _, (gap, _) in read_cases(above)]
        lines.append(
            f"{name_part(part)} ({count_trainings(result)}): {apart}; {tell_equal(near)}; over one label "
            f"{tell_span(gained)}"
        )
    return "\n".join(f"    - {line}." for line in lines)


def two_labels(result: Mapping[str, Any]) -> dict[str, list[float]]:
    """{user: difference of clients with two labels from the control}"""
    return losses(result, {"distribution": "iid"}, {"partition": "labels-2"})


def tell_sharing(data: Path) -> str:
    lines = []
    for part, result in find(data, "figure4.7").items():
        iid, plain = {"remedy": "none", "distribution": "iid"}, {"remedy": "none", "distribution": "non-iid"}
        shared = {"remedy": "data-sharing"}
        words = f"{name_part(part)} ({count_trainings(result)}): "
        helps = find_claim(result, "data-sharing-helps")
        if any(values_of(result, **shared)):
            learnt = dict(read_cases(helps, "Over the ranker before the first round"))
            words += (
                f"without sharing {tell_span(flat(losses(result, iid, plain)))} to the control, with it "
                f"{tell_span(flat(losses(result, iid, shared)))}; the last ranker is "
                f"{tell_cases(learnt, 'that of the warm-up')}; "
            )
        remedies = [tell_not_better(result, *each) for each in (("FedProx", "fedprox"), ("FedPer", "fedper"))]
        lines.append(words + ", ".join(filter(None, remedies)))
    return "\n".join(f"    - {line}." for line in lines)


def tell_not_better(result: Mapping[str, Any], name: str, remedy: str) -> str:
    """Of all cases in how many it is significantly better; nothing where it was not run."""
    cases = [case for _, case in read_cases(find_claim(result, f"{remedy}-does-not-help"))]
    return f"{name} is significantly better in {sum(map(is_above, cases))} of {len(cases)} cases" if cases else ""


def tell_clicks(data: Path) -> str:
    lines = []
    for part, result in find(data, "figure4.8").items():
        for name in ("ccm", "pbm"):
            claim = find_claim(result, f"click-behaviour-harmless-{name}")
            gaps = [gap for _, (gap, _) in read_cases(claim)]
            lines.append(f"{name.upper()} users {tell_span(gaps)}, {tell_equal(claim).removesuffix(' for all users')}")
        lines[-1] += f" ({name_part(part)}, {count_trainings(result)})"
    return "; ".join(lines).replace(" for all users", "") + "."


_SECTION = re.compile(r"(Alone|Mixed|Not lower) \((shown|not shown), p ([\d.e+-]+)\): ")


def tell_quantity(data: Path) -> str:
    """Alone, and mixed with another type beside that type alone."""
    lines = []
    for part, result in find(data, "figure4.9").items():
        other = "intents, by own labels" if part.startswith("intents") else "one label per client"
        for how, tests in read_quantity(result).items():
            words = "alone" if how == "Alone" else f"mixed with {other}, beside these alone"
            shown = "; ".join(f"{test} is {verdict} (p\u00a0{format_p(p)})" for test, verdict, p, _ in tests)
            lines.append(
                f"    - {name_part(part)} ({count_trainings(result)}), {words}: {tell_span(tests[0][3])}; {shown}."
            )
    return "\n".join(lines)


def read_quantity(result: Mapping[str, Any]) -> dict[str, list[tuple[str, str, float, list[float]]]]:
    """{"Alone" or "Mixed": (what was tested, "shown" or "not shown", p, differences)}"""
    _, *found = _SECTION.split(find_claim(result, "quantity-harmless")["why"])
    how, tests = "", dict[str, list[tuple[str, str, float, list[float]]]]()
    for name, verdict, p, text in zip(*(found[i::4] for i in range(4)), strict=True):
        how = how if name == "Not lower" else name
        margin = format_value(LITTLE)
        test = f"{'equal within' if text.startswith('Two') else 'not lower by'} {margin}"
        gaps = [float(gap) for _, gap, _ in _CASE.findall(text)]
        tests.setdefault(how, []).append((test, verdict, float(p), gaps))
    return tests


def reasons(data: Path) -> str:
    """The list under "What holds, and why"."""
    title = "the published gap is one of labels" if is_of_labels(data) else "beside the control"
    intents = "\n".join(f"    - {line}" for line in [*tell_intents(data), tell_fedprox(data)])
    return f"""- **Type 1, intents: {title}.** {_INTENTS}
{intents}
- **Type 2, one label per client.** {_ONE_LABEL}
{tell_one_label(data)}
- **Table 4.3 is arithmetic.** {_ARITHMETIC}
- **Type 2, two labels**, beside the control:
{tell_two_labels(data)}
- **Shared data and other remedies, one label per client.** {_SHARING}
{tell_sharing(data)}
- **Type 3, clicks:** {tell_clicks(data)}
- **Type 4, quantity.** {_QUANTITY}
{tell_quantity(data)}"""


_INTENTS = (
    "The thesis judges its control by the union of the intents and the others each by its own [thesis, Section 4.3.1]. "
    "Union labels have three times as many relevant documents, so any ranker scores higher by them. The order of the "
    "intents is drawn anew for every query, as published (`carry=0`), so no client has a taste that could pull the "
    "ranker its way."
)
_ONE_LABEL = (
    "The thesis suspects the pairwise loss. A list of one label says nothing of which document is better: clicks then "
    "move the ranker at random. What we see fits, but does not single it out. Where trainings spread widely, no effect "
    "of B can be told."
)
_ARITHMETIC = (
    "A list of one label scores 0 or 1 whatever the ranker. Ours gives 1324.36 with three grades and clients, and "
    "1589.23 with five, to the last printed digit."
)
_SHARING = (
    "A tenth of the queries is shared. The ranker of the warm-up has been trained on these alone: what the rounds add "
    "to it is what the federation brings on top."
)
_QUANTITY = (
    "Rankers of clients with one label are random, so that in a mixture with it little can be shown. With intents "
    "[the weights are the cause](#why-unequal-searches-cost-clients-with-different-intents)."
)


def summary(data: Path) -> str:
    """The line of the page's summary."""
    intents = [
        f"{'networks' if part.endswith('-network') else 'linear rankers'} "
        f"{tell_span([-gap for _, (gap, _) in read_cases(find_claim(result, 'intents-hurt'), *between)])} by {words}"
        for words, between in _LABELS.items()
        for part, result in find(data, "figure4.3").items()
    ]
    one, two = (
        "; ".join(
            f"{name_part(part)} {tell_span(flat(losses(result, {'distribution': 'iid'}, {**cell})))}"
            for part, result in find(data, "figure4.6").items()
        )
        for cell in ({"partition": "labels-1", "distribution": "non-iid"}, {"partition": "labels-2"})
    )
    alone, mixed = (
        tell_span([gap for result in find(data, "figure4.9").values() for gap in quantity_gaps(result, how)])
        for how in ("Alone", "Mixed with intents")
    )
    return (
        f"- Clients that differ, beside clients that are alike (nDCG@10 of the last ranker). Different intents "
        f"(`intent-change-like`, `carry=0`): {', '.join(intents)}. One label per client: {one}. Two labels: {two}. "
        f"Clicks: {tell_clicks(data).removesuffix('.')}. Unequal numbers of searches: alone {alone}; with intents, by "
        f"own labels and beside these alone, {mixed}. [Clients that differ](#clients-that-differ)"
    )


_LABELS = {
    "their own labels": ("Own labels for both: ", " As published"),
    "the union of labels": ("Union for both: ", " Own"),
}


def quantity_gaps(result: Mapping[str, Any], how: str) -> list[float]:
    """Differences alone, or mixed with intents."""
    is_intents = any("intents" in str(row.get("partition")) for row in result["rows"])
    if is_intents != how.endswith("intents"):
        return []
    tests = read_quantity(result).get(how.split()[0], [])
    return tests[0][3] if tests else []


TABLES: Tables = {"chapter4-summary": summary, "chapter4-reasons": reasons}
