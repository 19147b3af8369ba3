"""Sentences of docs/findings.md about personalised search [fedps] whose numbers follow from the kept results.

Words that say which of two is higher are tested (tests/docs/test_personal_findings.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from fedps_kept import (
    AOL,
    COMMERCIAL,
    EQUAL,
    LISTS,
    MODELS,
    compare,
    compare_federated,
    compare_searches,
    find_claim,
    find_result,
    find_row,
    gain_over_order,
    judge_again,
    signed,
    welch,
)
from tables import Row, Tables, make_markdown, read

from hushrank.look.numbers import format_p, format_value
from hushrank.reproduce.papers.fedps import CLEAR, LATE
from hushrank.reproduce.papers.fedps_reading import CLOSE
from hushrank.reproduce.verdicts import LEVEL

TABLE3 = "table3"
_SINGLE = re.compile(r"-like (\d+) ([^;(]+ over [^;(]+?) ([+-][\d.]+) \(p ([\d.e+-]+)\)")
HIDDEN, PROTECTED, OPEN = "cover-queries-cost-nothing", "proxy-above-other-protections", "personalised-above-general"


def count_users(data: Path, part: str) -> str:
    """`300 users each, 181 to 190 with a click in the test week`"""
    rows = [row for row in read(data, "fedps_users")["rows"] if row["data"] == part and not row["lists"]]
    measured = [row["n_measured"] for row in rows]
    return f"{rows[0]['n_users']} users each, {min(measured)} to {max(measured)} with a click in the test week"


def join(values: Sequence[str]) -> str:
    return f"{', '.join(values[:-1])} and {values[-1]}"


def general(data: Path) -> str:
    """Central training over the engine's order and over KNRM."""
    single = list_single(data, AOL, "")
    fails = [(name, p) for name, _, p in single if p >= CLEAR]
    assert fails and not find_claim(find_result(data, AOL, TABLE3), OPEN)["holds"]
    assert all(" over the engine's order " in name for name, _ in fails)
    told = "; ".join(f"{name} (p {format_p(p)})" for name, p in fails)
    others = [p for place in LISTS if place != (AOL, "") for _, _, p in list_single(data, *place)]
    pooled = max(gain_over_order(data, AOL, model).p or 0.0 for model in MODELS)
    assert max(others) < CLEAR and pooled < CLEAR
    level = format_value(CLEAR, decimals=3)
    return (
        "- **Every model that is trained in one place** is above KNRM in every population, with any lists (level "
        f"{level}, corrected). Above the engine's order it is in every population where lists have one length: all "
        f"{len(others)} comparisons there hold, KNRM's included. With the lists of `aol-like`, "
        f"{len(single) - len(fails)} of {len(single)} comparisons hold, so that the claim is not held there, and these "
        f"do not: {told}. With the users of all three populations together all of them hold (p at most {pooled:.1g})."
    )


def list_single(data: Path, part: str, variant: str) -> list[tuple[str, float, float]]:
    """[(comparison in words, difference, p)] of each population alone."""
    why = find_claim(find_result(data, part, TABLE3), OPEN)["why"]
    usual, _, equal = why.partition("With lists of one length")
    found = []
    for population, name, difference, p in _SINGLE.findall(equal if variant else usual):
        first, second = (words.split()[-1] for words in name.split(" over "))
        other = second.replace("original-order", "the engine's order").replace("knrm", "KNRM")
        found.append((f"{first.upper()} over {other} in population {population}", float(difference), float(p)))
    return found


def federated(data: Path) -> str:
    """Where lists have one length, and where they have two."""
    shares = [-compare_searches(data, AOL, "", model)[1] for model in MODELS]
    gains = gain_over_order(data, COMMERCIAL, "peps").populations
    peps = (
        f"- **PEPS above central training** on `commercial-like` is one population, 12, in which central PEPS is weak: "
        f"it gains {signed(gains[1])} on the engine's order there, and {join([signed(gains[n]) for n in (0, 2)])} in "
        "the others. It is no sign that federated training is better."
    )
    lists = (
        f"- **With lists of 5 and 50** federated training is {min(shares):.0%} to {max(shares):.0%} below (by "
        f"searches). The same users with lists of 10 do not show this, so that lists are the reason. {say_lists(data)}"
    )
    table = [f"\n{tabulate_steps(data)}"] if (data / "fedps_htps.json").is_file() else []
    return "\n".join([say_equal(data), say_htps(data), peps, lists, *table])


def tabulate_steps(data: Path) -> str:
    """HTPS with other steps of the server, on users that no table reports."""
    found = read(data, "fedps_htps")
    central = found["central"]
    header = ["HTPS, lists of 10", "validation MAP", "test MAP", "less central, by users", "best rounds"]
    rows = [["all logs in one place", *tell_level(central), "", tell_rounds(central)]]
    for row in found["rows"]:
        error = format_value(row["standard_error"], decimals=4)
        rows.append([row["setting"], *tell_level(row), f"{signed(row['difference'])} ± {error}", tell_rounds(row)])
    return make_markdown(header, rows)


def tell_level(row: Row) -> list[str]:
    return [format_value(row[which], decimals=4) for which in ("validation", "test")]


def tell_rounds(row: Row) -> str:
    """`20 and 24 of 48`"""
    return f"{join([str(n) for n in row['best_rounds']])} of {row['rounds']}"


def say_equal(data: Path) -> str:
    """What two one-sided tests show of each model where all lists have one length."""
    places = [place for place in LISTS if place != (AOL, "")]
    found = {(place, model): compare_federated(data, *place, model) for place in places for model in MODELS}
    told = "; ".join(
        f"{LISTS[place]}: " + ", ".join(f"{m.upper()} {signed(found[place, m][0].difference)}" for m in MODELS)
        for place in places
    )
    is_within = all(abs(each.difference) < margin for each, margin in found.values())
    within = "is smaller than the margin" if is_within else "is beside its margin in the table"
    begin = f"- **Where all lists have one length**, the difference of every model {within} ({told}; by users)."
    if any(each.p is None for each, _ in found.values()):
        p = find_claim(find_result(data, COMMERCIAL, TABLE3), "federated-equals-central")["p"]
        return (
            f"{begin} That all three are equal is not shown (`commercial-like`: the largest p is {format_p(p)}); HTPS "
            "is nearest to the margin. Which of the single tests hold was not kept, and is open until they are run "
            "again."
        )
    shown, open_ = [], []
    for place in places:
        for model in MODELS:
            each, _ = found[place, model]
            words = f"{model.upper()} on {LISTS[place]} (p {format_p(each.p or 0.0)})"
            (shown if (each.p or 0.0) < LEVEL else open_).append(words)
    if not open_:
        return f"{begin} All {len(shown)} are equal by two one-sided tests."
    equal = f"Equal by two one-sided tests are {join(shown)}" if shown else "Equality is shown of none"
    is_open = f"not shown: {join(open_)}"
    return f"{begin} {equal}; {is_open}. Not shown is not refuted: with so few users a difference must be near zero."


def say_htps(data: Path) -> str:
    """What was found on users that no table reports (`benchmarks/federated_gap.py`)."""
    every = [v for place in LISTS for v in compare_federated(data, *place, "htps")[0].populations]
    n_below = sum(value < 0 for value in every)
    where = "every population" if n_below == len(every) else f"{n_below} of {len(every)} populations and kinds of lists"
    if not (data / "fedps_htps.json").is_file():
        unfinished = find_claim(find_result(data, AOL, TABLE3), "federated-equals-central")["why"]
        ends = next(each for each in unfinished.split(". ") if "best in their last round" in each)
        return (
            f"- **HTPS** is below in {where}. We do not know why. More rounds may help on `aol-like`, where {ends} "
            "(all models, both lengths of lists); on `commercial-like` none was."
        )
    found = read(data, "fedps_htps")
    rows = {row["setting"]: row for row in found["rows"]}
    usual, chosen = found["rows"][0], rows[found["chosen"]]
    gain = chosen["difference"] - usual["difference"]
    seeds = join([str(seed) for seed in found["seeds"]])
    if chosen is usual:
        what = "Validation searches choose none of the other settings, so that Table 3 has the usual one."
    else:
        what = (
            f"Validation searches choose *{chosen['setting']}*. There it changes the difference from central training "
            f"by {signed(gain)}, from {signed(usual['difference'])} to {signed(chosen['difference'])}. Table 3 was not "
            "run with it."
        )
    closes = [r["setting"] for r in found["rows"] if abs(r["difference"]) < found["margin"]]
    near = (
        f"Within the margin of {signed(found['margin'])[1:]} there: {', '.join(closes)}."
        if closes
        else "None is within the margin there."
    )
    return (
        f"- **HTPS** is below in {where}. Other steps of the server were tried on two populations that no table "
        f"reports (seeds {seeds}, lists of 10; `python -m benchmarks.federated_gap htps`), below. {what} {near}"
    )


def say_lists(data: Path) -> str:
    """Whether the choice of the round is how lists of two lengths cost MAP (`benchmarks/federated_gap.py`)."""
    if not (data / "fedps_lists.json").is_file():
        return (
            "How they are is not tested; validation, which chooses the round, cannot see long lists, and federated "
            "models train for more rounds."
        )
    found = read(data, "fedps_lists")
    seeds = join([str(seed) for seed in found["seeds"]])
    told = "; ".join(tell_case(row) for row in found["rows"])
    begin = (
        f"How, on two populations that no table reports (seeds {seeds}; means over searches, no test; "
        f"`python -m benchmarks.federated_gap lists`): {told}."
    )
    short = min(row["trained_on"] for row in found["rows"])
    left = {row["model"]: find_left(row) for row in found["rows"] if row["trained_on"] == short}
    if max(left.values()) < CLOSE:
        return f"{begin} This fits that the choice of the round is how: with the best one less than 2 % is left."
    most = f"{max(left.values()):.0%}"
    begin = f"{begin} So the choice of the round is not all of it: with the best one up to {most} is left."
    return " ".join(
        [begin, *(tell_longer(row, left[row["model"]]) for row in found["rows"] if row["trained_on"] > short)]
    )


def find_left(row: Row) -> float:
    """Share of central training's MAP that is missing where both take the rounds that are best for lists of 50."""
    return -(row["flat"]["chosen_by_50"] - row["central"]["chosen_by_50"]) / row["central"]["chosen_by_50"]


def tell_case(row: Row) -> str:
    flat, central = row["flat"], row["central"]
    gaps = [signed(flat[how] - central[how]) for how in ("chosen_by_short", "chosen_by_50")]
    rounds = [join([str(n) for n in flat[which]]) for which in ("rounds_by_short", "rounds_by_50")]
    return (
        f"{row['model'].upper()} trained on lists of {row['trained_on']} {gaps[0]}, and {gaps[1]} with the round that "
        f"is best for lists of 50 (rounds {rounds[0]}, and {rounds[1]} of clients)"
    )


def tell_longer(row: Row, before: float) -> str:
    """The same model trained on longer lists."""
    left = find_left(row)
    less = f"{row['model'].upper()} trained on lists of {row['trained_on']} lacks {left:.1%} instead of {before:.1%}"
    return f"{less}{', as if short lists were the rest' if left < CLOSE <= before else ''}."


def hiding(data: Path) -> str:
    """What shared ids and covers cost PEPS in one place."""
    shared, covers = [], []
    for (part, variant), words in LISTS.items():
        found = compare(find_result(data, part, TABLE3), HIDDEN)
        name = " ".join(filter(None, [part, "peps", variant]))
        shared.append(found[f"{name} central over group-user"].difference)
        covers.append(f"{signed(found[f'{name} cover-query over central'].difference)} on {words}")
    low, high = (format_value(pick(shared), decimals=3) for pick in (min, max))
    return (
        "Hiding in a log that stays in one place has its price, too (by users). Ids that 100 users share cost PEPS "
        f"{low} to {high} of MAP. Cover queries change it by {join(covers)}: within 2 % on the last two, and not on "
        "the first."
    )


def unlike(data: Path) -> str:
    """Where results differ from the paper's, with a reason or without one."""
    return "\n".join(
        [say_knrm(data), say_order(data), say_covers(data), say_cohorts(data), say_epochs(data)],
    )


def say_knrm(data: Path) -> str:
    told = []
    for (part, variant), words in LISTS.items():
        result = find_result(data, part, TABLE3)
        knrm, order = (find_row(result, method=method, variant=variant) for method in ("knrm", "original-order"))
        values = " against ".join(format_value(row["ours"], decimals=3) for row in (knrm, order))
        told.append(f"{values} on {words} (p {format_p(welch(knrm, order))})")
    printed = {}
    for part in (AOL, COMMERCIAL):
        rows = [find_row(find_result(data, part, TABLE3), method=method) for method in ("knrm", "original-order")]
        printed[part] = " against ".join(format_value(row["published"], decimals=4) for row in rows)
    return (
        f"- **KNRM is below the engine's order everywhere**: {join(told)}, by Welch's tests of three populations' "
        f"means. The paper prints it below on its commercial log ({printed[COMMERCIAL]}) and above on AOL "
        f"({printed[AOL]}). KNRM reads words alone; all other models have the engine's rank and BM25 among their "
        "features, and generated users click more on what stands above. Whether that is the reason was not tested."
    )


def say_order(data: Path) -> str:
    """Of models; the paper has them the other way round."""
    ps = [
        welch(*(find_row(find_result(data, part, TABLE3), method="central", ranker=m, variant=variant) for m in pair))
        for part, variant in LISTS
        for pair in (("hrnn", "htps"), ("hrnn", "peps"), ("htps", "peps"))
    ]
    printed = [
        ", ".join(
            format_value(find_row(find_result(data, part, TABLE3), method="central", ranker=m)["published"], decimals=4)
            for m in MODELS
        )
        for part in (AOL, COMMERCIAL)
    ]
    return (
        f"- **The order of the models** is another one. The paper prints HRNN below HTPS and PEPS ({printed[0]} on "
        f"AOL, {printed[1]} on its commercial log); here HRNN has the highest mean of the three with any lists. Three "
        f"populations cannot tell more (Welch's tests, p {format_p(min(ps))} to {format_p(max(ps))}, not corrected). "
        "We do not know why. The linear ranker above has higher means than any of them, so that with 300 users what a "
        "model adds to the features does not seem to pay; that was not tested either."
    )


def say_covers(data: Path) -> str:
    told = [
        "; ".join(
            f"{name.rpartition('/')[2] if '/' in name else 'MAP'} {signed(found.difference)} (p {format_p(found.p)})"
            for name, found in compare(find_result(data, part, TABLE3), PROTECTED).items()
            if "over cover-query" in name and found.p is not None and EQUAL not in name
        )
        for part in (AOL, COMMERCIAL)
    ]
    return (
        f"- **FedPSProxy is below CoverQuery** on `aol-like`: {told[0]}. CoverQuery trains in one place, and has what "
        f"that gains with lists of 5 and 50 (above). On `commercial-like` it is the other way round: {told[1]}. "
        f"{say_covers_of_ten(data)}"
    )


def say_covers_of_ten(data: Path) -> str:
    """FedPSProxy and CoverQuery where lists have one length."""
    every = compare(find_result(data, AOL, TABLE3), PROTECTED)
    equal = [found for name, found in every.items() if "over cover-query" in name and EQUAL in name]
    if equal and equal[0].p is not None:
        found = equal[0]
        so = "no longer below" if found.difference > 0 or found.p >= LEVEL else "still below"
        return f"With lists of 10 FedPSProxy is {so}: MAP {signed(found.difference)} (p {format_p(found.p)})."
    flat = compare_federated(data, AOL, EQUAL, "peps")[0].difference
    covers = compare(find_result(data, AOL, TABLE3), HIDDEN)[f"{AOL} peps {EQUAL} cover-query over central"].difference
    return (
        f"With lists of 10 proxies were not run; flat training without late clients is {signed(flat)} and CoverQuery "
        f'{signed(covers)} from central training there, which leaves no room for "above".'
    )


def say_cohorts(data: Path) -> str:
    result = find_result(data, AOL, "table4")
    means = [
        f"{format_value(row['ours'], decimals=4)} with {row['n_sampled']}"
        for row in result["rows"]
        if row["metric"] == "offline/MAP" and row["ours"] is not None
    ]
    (found,) = (c for name, c in compare(result, "smaller-cohort-better").items() if name.endswith("=100"))
    judged = [
        judge_again(result, find_claim(result, id)) for id in ("larger-cohort-fewer-steps", "larger-cohort-more-rounds")
    ]
    assert all(claim["holds"] for claim in judged)
    ps = [format_p(claim["p"]) for claim in judged]
    return (
        f"- **Clients in a step.** Only 5 was tested against 100 ({signed(found.difference)}, p "
        f"{format_p(found.p or 0.0)}). Means do not fall from size to size: {join(means)}. Of steps and rounds, too, "
        f"tests compare these two alone (Welch's, of three populations: p {join(ps)}); between them means fall and "
        "rise as claimed."
    )


def say_epochs(data: Path) -> str:
    found = compare(find_result(data, AOL, "table5"), "more-epochs-lower-map")
    two, three = (found[f"{AOL} epochs=1 over epochs={n}"] for n in (2, 3))
    each = join([signed(value) for value in two.populations])
    result = find_result(data, AOL, "table5")
    rounds = judge_again(result, find_claim(result, "more-epochs-fewer-rounds"))
    assert not rounds["holds"]
    saved = [
        f"{test['difference']:.1f} with {n} (p {format_p(test['p_corrected'])})"
        for n, test in zip((2, 3), rounds["tests"], strict=True)
    ]
    return (
        f"- **Epochs.** By means more than one epoch saves rounds: {join(saved)}. By Welch's tests, corrected, three "
        f"populations are too few to show it. Three cost MAP ({signed(three.difference)}, p "
        f"{format_p(three.p or 0.0)}). Two cannot be told from one "
        f"({signed(two.difference)}, p {format_p(two.p or 0.0)}; by population {each}). The paper prints a "
        "difference of .0021, too small to be shown with this many users."
    )


def steps(data: Path) -> str:
    """What Figure 4 shows of each claim."""
    return "\n".join([say_growth(data), say_late_weeks(data), say_early_weeks(data), say_updating(data)])


def tests_of(data: Path, id: str) -> list[Row]:
    """Of a claim of Figure 4; none where single users of each week were not kept."""
    return list(find_claim(find_result(data, AOL, "figure4"), id).get("tests", ()))


def tell_test(test: Row) -> str:
    return f"{signed(test['difference'])}, p {format_p(test['p_corrected'])}"


def say_growth(data: Path) -> str:
    retrained = {method: gains for (method, how), gains in read_weeks(data).items() if how == "retrain"}
    n_up = [sum(b > a for a, b in pairwise(gains)) for gains in retrained.values()]
    n_steps = len(next(iter(retrained.values()))) - 1
    falls = [signed(fmean(gains[4:]) - fmean(gains[1:4])) for gains in retrained.values()]
    means = (
        f"By means the three retrained ones rise in {join([str(n) for n in n_up])} of {n_steps} steps. They gain much "
        f"after the first week; weeks 5 to 7 less weeks 2 to 4 are {join(falls)} in the order of the table."
    )
    of_weeks = [t for t in tests_of(data, "quality-grows-with-data") if " retrain" in t["pair"]]
    of_steps = [test for test in of_weeks if ", week " in test["pair"]]
    if not of_steps:
        return (
            "- **That models improve from week to week is not shown.** Single users of each week were not kept, so "
            f'that there is no test. {means} The paper says "generally", and shows no test.'
        )
    up, down = (
        sum(test["p_corrected"] < LEVEL and sign * test["difference"] > 0 for test in of_steps) for sign in (1, -1)
    )
    verdict = "is shown" if up == len(of_steps) else "is not shown"
    slopes = [test for test in of_weeks if ", week " not in test["pair"]]
    half = len(slopes) // 2
    lines = [f"{each['pair'].split()[1]} {tell_test(each)}" for each in slopes]
    return (
        f"- **That models improve from week to week {verdict}.** The three retrained ones make {len(of_steps)} steps "
        f"from one week to the next. Significantly upwards: {up}; downwards: {down} (paired by users, corrected). What "
        f"a user gains by a week, the slope of a line over all weeks: {'; '.join(lines[:half])}. From week 2 on: "
        f'{"; ".join(lines[half:])}. {means} The paper says "generally", and shows no test.'
    )


def say_late_weeks(data: Path) -> str:
    near = find_claim(find_result(data, AOL, "figure4"), "proxy-near-central-late")
    tests = tests_of(data, "proxy-near-central-late")
    how = (
        f"The test pairs {tests[0]['n']} users, with the mean over their weeks."
        if tests
        else "The test has 9 values, 3 weeks of 3 populations, which share their users: p is a guide."
    )
    behind = tests_of(data, "flat-falls-behind-proxy")
    flat = (
        f" Proxies less flat training: {tell_test(behind[0])}; in late weeks more than in early ones by "
        f"{tell_test(behind[1])}."
        if behind
        else ""
    )
    are = "are" if near["holds"] else "are not shown to be"
    return f"- **Late weeks with proxies** {are} within 2 % of central training (p {format_p(near['p'])}). {how}{flat}"


def say_early_weeks(data: Path) -> str:
    tests = tests_of(data, "proxy-below-central-early")
    by_users = f" (central less proxies in weeks 1 to 3, by users: {tell_test(tests[0])})" if tests else ""
    return (
        f"- **Proxies are not below central training in early weeks**{by_users}. Two rounds are too few for central "
        "training on one week of logs. With four, week 1 is as good as with proxies, and all later weeks are worse. "
        "With neither does the paper's order appear."
    )


def say_updating(data: Path) -> str:
    weeks = read_weeks(data)
    flat = {how: weeks["fedps-flat", how] for how in ("retrain", "continue", "online")}
    last = [a - b for a, b in zip(flat["retrain"], flat["continue"], strict=True)]
    below = sum(gain < 0 for gain in flat["online"])
    tests = tests_of(data, "retraining-above-online")
    above = f", over all weeks by {tell_test(tests[0])}" if tests else ""
    beside = (
        f"; over all weeks, by users, retraining less continuing is {tell_test(tests[1])}" if len(tests) > 1 else ""
    )
    return (
        f"- **Three ways of updating.** Retraining is above online updates in every week{above}; these learn from each "
        f"search once, and are below the engine's order in the first {below} weeks. Of continuing with new logs alone "
        "the paper claims nothing, and no verdict was made: by means it differs from retraining in weeks 2 to 5 by "
        f"{signed(-max(last[1:5]))} to {signed(-min(last[1:5]))}, and in weeks 6 and 7 by "
        f"{join([signed(-gain) for gain in last[5:]])}{beside}."
    )


def read_weeks(data: Path) -> dict[tuple[str, str], list[float]]:
    """{(method, updating): MAP gained on the engine's order, by week}"""
    weeks: dict[tuple[str, str], list[float]] = {}
    for row in find_result(data, AOL, "figure4")["rows"]:
        weeks.setdefault((row["method"], row["updating"]), []).append(row["ours"])
    return weeks


def late_said(data: Path) -> str:
    """Table 3 and the new populations."""
    name = "{} peps fedps-proxy whole over fedps-flat"
    aol, commercial = (
        compare(find_result(data, part, TABLE3), "proxy-above-flat")[name.format(part)] for part in (AOL, COMMERCIAL)
    )
    p = find_claim(find_result(data, AOL, TABLE3), "proxy-not-below-flat")["p"]
    first, *more = [row for row in read(data, "late_clients")["rows"] if row["late"] == LATE]
    begin = (
        f"With a tenth late, proxies are not .005 below on `aol-like` ({signed(aol.difference)}, p {format_p(p)}). On "
        f"`commercial-like` the difference is within .005 in "
    )
    if not more:
        return (
            f"{begin}both measurements ({signed(commercial.difference)} in Table 3, {signed(first['difference'])} "
            "here), and neither rules out more."
        )
    new = more[0]
    n, difference, p_new = len(new["populations"]), new["difference"], format_p(new["not_below"]["p"])
    earlier = f"{signed(commercial.difference)} in Table 3 and {signed(first['difference'])} in five populations"
    is_shown = "is shown" if new["not_below"]["holds"] else "is not shown"
    return (
        f"{begin}the first two measurements, {earlier}, and neither rules out more. Of the third, {n} further "
        "populations, the size was fixed before they were trained. "
        f"It {is_shown} there that proxies are not .005 below ({signed(difference)}, p {p_new}); "
        f"p of a difference is {format_p(new['above']['p'])}."
    )


SAID: Tables = {
    "fedps-general": general,
    "fedps-federated": federated,
    "fedps-hiding": hiding,
    "fedps-unlike": unlike,
    "fedps-steps": steps,
    "fedps-late-said": late_said,
}
