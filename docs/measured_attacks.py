"""Tables and the heat map of docs/howto/which-rule.md, from `python -m benchmarks.attacks`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from tables import USERS, Row, Tables, make_markdown, read, show_spread

from hushrank.look.numbers import format_p, format_signed, format_value
from hushrank.metrics.significance import bonferroni, paired_t_test
from hushrank.reports.attack_matrix import MEAN, PEACE, Matrix, MatrixLine, matrix_map, name_attack, read_matrix
from hushrank.reports.wording import count_text
from hushrank.types import Array

NAMES = {"mq2008": "MQ2008", "mq2007": "MQ2007"}
SHOWN = "informational"  # users of the heat map
LEVEL, EXPELLED_MARGIN = 0.05, 0.003
KRUMS, OTHERS, POISONED = ("krum", "multi-krum"), ("trimmed-mean", "median"), "poisoned-clicks"
FANG = {  # {rule: the attack that is made for it}
    **{rule: f"fang-{rule}:full" for rule in KRUMS},
    **dict.fromkeys(OTHERS, "fang-trimmed-mean:full"),
}
CHOSEN_AT = 20.0  # per cent malicious clients
CYCLE = ("cycle", "cycle:full", "cycle:short", "cycle:repaid")  # who pays for lies; measured under two more rules
WITHSTAND = ("norm-bound", "multi-krum")
VERDICTS = ("nobody judged", "same bits", "equal", "not lower", "lower", "not shown")  # of `benchmarks.expelled`


def load(data: Path) -> Matrix:
    return read_matrix(read(data, "attacks"))


def setting(data: Path) -> str:
    """What was run, in a sentence."""
    matrix = load(data)
    about = matrix.about
    name = NAMES.get(about["data"], about["data"])
    size = f"{about['n_clients']:,} clients, {about['interactions']} searches each in {about['rounds']:,} rounds"
    trained = f"{count_text(about['folds'], 'fold')}, {count_text(about['repeats'], 'repeat')}"
    return (
        f"Measured on {name}: {size}, {trained}, linear ranker. Rules that need the number of malicious clients are "
        f"told it; if nobody lies, they assume {about['assumed']:g} % of the clients."
    )


def by_rule(data: Path) -> str:
    """What each rule costs in peace, and its largest loss at each share of malicious clients."""
    matrix = load(data)
    shares = sorted({line.share for line in matrix.lines if line.share})
    header = ["`aggregation`", "nobody lies", *(f"worst at {share:g} %" for share in shares)]
    lines = [
        [f"`{rule}`", peace_cost(matrix, rule), *(worst_loss(matrix, rule, share) for share in shares)]
        for rule in matrix.rules
    ]
    return make_markdown(header, lines)


def distance(matrix: Matrix, line: MatrixLine, rule: str, user: str) -> float | None:
    """From plain averaging with nobody malicious."""
    mean, peace = matrix.mean_test(line, rule, user), matrix.peace(user)
    return None if mean is None or peace is None else mean - peace


def peace_cost(matrix: Matrix, rule: str) -> str:
    """The mean over users."""
    found = [distance(matrix, MatrixLine(PEACE, 0), rule, user) for user in matrix.users]
    known = [value for value in found if value is not None]
    return format_signed(sum(known) / len(known)) if known else "not defined"


def worst_loss(matrix: Matrix, rule: str, share: float) -> str:
    """Over attacks and users, with the attack."""
    lines = [line for line in matrix.lines if line.share == share]
    found = [(distance(matrix, line, rule, user), line.attack) for line in lines for user in matrix.users]
    known = [(value, attack) for value, attack in found if value is not None]
    if not known:
        return "not defined"
    value, attack = min(known)
    return f"{format_signed(value)}<br>{name_attack(attack)}"


def chosen(data: Path) -> str:
    """The rule that validation queries choose for each attack, beside plain averaging and `watchful`."""
    matrix = load(data)
    lines = [line for line in matrix.lines if line.share == CHOSEN_AT]
    rows = []
    for line in lines:
        best = matrix.choose_rule([line])
        if best is not None:
            cells = [mean_quality(matrix, line, rule) for rule in (best, MEAN, "watchful")]
            rows.append([name_attack(line.attack), f"`{best}`", *cells])
    return make_markdown(["attack", "chosen", "chosen, test", "`mean`", "`watchful`"], rows, n_words=2)


def mean_quality(matrix: Matrix, line: MatrixLine, rule: str) -> str:
    """Over users."""
    found = [matrix.mean_test(line, rule, user) for user in matrix.users]
    known = [value for value in found if value is not None]
    return format_value(sum(known) / len(known) if known else None)


def heat(data: Path) -> str:
    return matrix_map(load(data), SHOWN, name="attacks-heat")


def judged(data: Path) -> str:
    """`watchful` against the rule that validation queries choose and against plain averaging, over five seeds."""
    cells: dict[tuple[str, float], list[Row]] = {}
    for cell in read(data, "attacks_judged")["cells"]:
        cells.setdefault((cell["attack"], cell["share"]), []).append(cell)
    rows = [
        [
            name_attack(attack),
            f"`{found[0]['best']}`",
            f"{share:g} %",
            *(" / ".join(format_signed(cell[key]) for cell in found) for key in ("difference", "over_mean")),
        ]
        for (attack, share), found in cells.items()
    ]
    header = ["attack", "chosen", "malicious", "`watchful` minus chosen", "`watchful` minus `mean`"]
    return make_markdown(header, rows, n_words=2)


def judged_setting(data: Path) -> str:
    """What was run over five seeds, what was not, and how the rule to compare with was chosen."""
    found, shares = read(data, "attacks_judged"), judged_shares(data)
    names = [attack.partition(":")[0] for attack in shares]
    n_twice = len(names) - len(set(names))
    many, once = ([attack for attack, of in shares.items() if (len(of) > 1) == several] for several in (True, False))
    told = " and ".join(f"{share:g}" for share in shares[once[0]])
    *first, last = (f"{share:g}" for share in shares[many[0]])
    named = ", ".join(quote_attack(attack) for attack in found["attacks_not_run"])
    missing = f" Not run over five seeds, so that only the table above is about them: {named}." if named else ""
    lost = [cell for cell in read(data, "attacks_five")["cells"] if cell["state"] == "diverged"]
    zeros = [f"{quote_attack(each['attack'])} at {each['share']:g} % under `{each['rule']}`" for each in lost]
    return (
        f"The same over five seeds, {found['n_trainings']} trainings for each user: {len(set(names))} attacks, "
        f"{n_twice} of them twice, with partial and with full knowledge, so {len(names)} variants. The {len(many)} "
        f"of the thesis have {', '.join(first)} and {last} % malicious clients, the other {len(once)} have {told} % "
        "alone. For each variant one rule was chosen on validation queries among all rules but `watchful`, over one "
        "seed. Only this rule, `mean` and `watchful` were trained over five seeds; *chosen* is the better of the first "
        "two on validation queries of these. Three numbers are perfect / navigational / informational users."
        f"{missing} A training that diverged counts as 0: all of {' and of '.join(zeros)} did, so that the difference "
        "there is all that `watchful` reached."
    )


def judged_shares(data: Path) -> dict[str, list[float]]:
    """{attack: per cent malicious clients that it was judged at}"""
    found: dict[str, dict[float, None]] = {}
    for cell in read(data, "attacks_judged")["cells"]:
        found.setdefault(cell["attack"], {})[cell["share"]] = None
    return {attack: list(shares) for attack, shares in found.items()}


def fang(data: Path) -> str:
    """Fang et al.'s attacks, each on the rule that it is made for, beside poisoned clicks under the same rule."""
    matrix = load(data)
    forged = {rule: lose(matrix, attack, rule) for rule, attack in FANG.items()}
    poisoned = {rule: lose(matrix, POISONED, rule) for rule in FANG}
    krums, others = (np.mean([forged[rule] for rule in rules], axis=0) for rules in (KRUMS, OTHERS))
    names = [*(f"`{rule}`" for rule in FANG), " and ".join(f"`{rule}`" for rule in KRUMS)]
    pairs = [*zip(forged.values(), poisoned.values(), strict=True), (krums, others)]
    tests = [paired_t_test(ours, theirs) for ours, theirs in pairs]
    beside = [*("poisoned clicks" for _ in FANG), " and ".join(f"`{rule}`" for rule in OTHERS)]
    rows = [
        [name, format_value(fmean(a)), f"{other}: {format_value(fmean(b))}", format_signed(fmean(a) - fmean(b)), told]
        for name, (a, b), other, told in zip(
            names, pairs, beside, map(format_p, bonferroni([test.p for test in tests])), strict=True
        )
    ]
    header = ["under", "loss to Fang et al.'s attack", "loss to compare", "difference", "p, corrected"]
    return make_markdown(header, rows, n_words=1)


def lose(matrix: Matrix, attack: str, rule: str) -> Array:
    """[users x folds] of the mean with honest clients less the rule under attack, mean over shares of liars."""

    def reach(line: MatrixLine, name: str) -> Array:
        found = [matrix.test(line, name, user) for user in matrix.users]
        return np.concatenate([np.array(values) for values in found if values is not None])

    under = [reach(line, rule) for line in matrix.lines if line.attack == attack]
    return np.asarray(reach(MatrixLine(PEACE, 0), MEAN) - np.mean(under, axis=0))


def quote_attack(attack: str) -> str:
    name, _, knowledge = attack.partition(":")
    return f"`{name}`" + (f" ({knowledge} knowledge)" if knowledge else "")


def tell_peace(found: Row) -> str:
    return ", ".join(format_signed(row["difference"], decimals=4) for row in found["peace"])


def judged_verdict(data: Path) -> str:
    """Whether it is as good as the chosen rule, and never worse than plain averaging."""
    found = read(data, "attacks_judged")
    return (
        f"`watchful` is within .005 of the chosen rule for {found['n_near']} of {found['n_cells']} combinations over "
        f"five seeds, and significantly below `mean` by more than .005 for {found['n_worse_than_mean'] or 'none'} "
        "(one-sided t-tests, corrected for their number; `docs/benchmarks/attacks_judged.json`, from `python -m "
        "benchmarks.attacks_compare docs/benchmarks/attacks_five.json --peace docs/benchmarks/attacks_peace.json`). "
        f"With nobody lying it {'equals' if found['peace_holds'] else 'is not shown to equal'} `mean` within .002 for "
        f"every user ({found['peace'][0]['n']} trainings: {tell_peace(found)}; two one-sided tests, largest p "
        f"{format_p(max(row['p'] for row in found['peace']))})."
    )


def versions(data: Path) -> str:
    """That the two matrices are not of one version, and how much that shows."""
    old, new = (read(data, name) for name in ("attacks", "attacks_five"))
    before, n_repeats = read_matrix(old), new["about"]["repeats"]
    shifts = [
        np.subtract(values[::n_repeats], before.test(MatrixLine(cell["attack"], cell["share"]), cell["rule"], user))
        for cell in new["cells"]
        for user, values in cell["test"].items()
    ]
    means = [float(np.mean(shift)) for shift in shifts]
    assert old["when"] < new["when"]
    return (
        f"The matrix over one seed is of {old['when'][:10]}, that over five seeds of {new['when'][:10]}: the first was "
        "measured with an earlier version of the engine and of `watchful`, so that single cells differ. The first seed "
        f"is in both: of {len(shifts)} combinations of attack, share, rule and user {sum(s.any() for s in shifts)} "
        f"have other values, by {format_signed(min(means))} to {format_signed(max(means))} in the mean over folds."
    )


def beside(data: Path, *, name: str, rules: Sequence[str] = ()) -> str:
    """Quality of each user by attack, share and rule, and whose updates `watchful` left out; rules: default all."""
    found = read(data, name)
    matrix = read_matrix(found)
    told = {(row["attack"], row["share"]): row for row in found["cells"] if row["rule"] == "watchful"}
    rows = []
    for line in matrix.lines:
        quality = show_users(matrix, line, rules or matrix.rules)
        left_out = [share_of_updates(told[line.attack, line.share].get(part)) for part in ("caught", "wronged")]
        rows.append([name_attack(line.attack), f"{line.share:g} %", *quality, *left_out])
    named = [f"`{rule}`" for rule in rules or matrix.rules]
    header = ["attack", "malicious", *named, "liars' updates left out", "honest updates left out"]
    return make_markdown(header, rows)


def show_users(matrix: Matrix, line: MatrixLine, rules: Sequence[str]) -> list[str]:
    """By rule: the quality of each user."""
    by_rule = ([format_value(matrix.mean_test(line, rule, user)) for user in matrix.users] for rule in rules)
    return [" / ".join(values) for values in by_rule]


def withstood(data: Path) -> str:
    """Two rules beside `watchful` under the attack that it forgives, and with nobody lying."""
    matrix, rules = read_matrix(read(data, "attacks_adaptive")), (MEAN, "watchful", *WITHSTAND)
    lines = [line for line in matrix.lines if line.attack in (PEACE, *CYCLE)]
    rows = [[name_attack(line.attack), f"{line.share:g} %", *show_users(matrix, line, rules)] for line in lines]
    return make_markdown(["attack", "malicious", *(f"`{rule}`" for rule in rules)], rows)


def withstood_verdict(data: Path) -> str:
    """How much that attack costs, how little of it is left out, and what other rules lose to it and to others."""
    found, everything = read(data, "attacks_adaptive"), load(data)
    matrix = read_matrix(found)
    lines = [line for line in matrix.lines if line.attack in CYCLE]
    shares = {line.share: [other for other in lines if other.share == line.share] for line in lines}
    at = [f"{show_loss(worst_distance(matrix, of, 'watchful'))} at {share:g} %" for share, of in shares.items()]
    left_out = [
        fmean(row["caught"].values()) for row in found["cells"] if row["attack"] in CYCLE and row["rule"] == "watchful"
    ]
    bound, krum = (show_loss(worst_distance(matrix, lines, rule)) for rule in WITHSTAND)
    others = [
        f"`{rule}` by {show_loss(worst_distance(everything, at_share(everything, share), rule))} at {share:g} %"
        for rule in WITHSTAND
        for share in (20.0, 30.0)
    ]
    return (
        f"Under `cycle` `watchful` is below the mean with honest clients by up to {', '.join(at)} malicious clients "
        f"(the worst version and kind of users). It leaves out {100 * min(left_out):.0f} to "
        f"{100 * max(left_out):.0f} % of the liars' updates, at 30 % next to none: what each sends adds up to too "
        f"little. `norm-bound` and `multi-krum` are at most {bound} and {krum} "
        f"below at every share; `multi-krum` is told how many lie. But other attacks harm these two far more than "
        f"`cycle` harms `watchful`: in [the table above](#what-was-measured) {', '.join(others)}."
    )


def white_box(data: Path) -> str:
    """What liars reach who see all updates and what `watchful` remembers, by rule."""
    rows = read(data, "white_box")["rows"]
    found = {(row["attack"], row["share"], row["rule"], row["user"]): row for row in rows}
    rules, users = (list(dict.fromkeys(row[key] for row in rows)) for key in ("rule", "user"))
    lines = []
    for attack, share in dict.fromkeys((row["attack"], row["share"]) for row in rows):
        cells = [[found.get((attack, share, rule, user)) for user in users] for rule in rules]
        shown = [" / ".join("–" if row is None else format_value(fmean(row["test"])) for row in each) for each in cells]
        left_out = {row["user"]: row["caught"] for row in cells[rules.index("watchful")] if row is not None}
        name = "nobody lies" if attack == PEACE else attack
        shown = [cell.replace("– / – / –", "–") for cell in shown]
        lines.append([name, f"{share} %", *shown, share_of_updates(left_out)])
    header = ["attack", "malicious", *(f"`{rule}`" for rule in rules), "left out by `watchful`"]
    return make_markdown(header, lines)


def white_box_verdict(data: Path) -> str:
    """The lowest that `watchful` falls to at each share, and who does so."""
    rows = read(data, "white_box")["rows"]
    told = []
    for share in sorted({row["share"] for row in rows} - {0}):
        own = [row for row in rows if row["share"] == share and row["rule"] == "watchful"]
        worst = min(own, key=lambda row: fmean(row["test"]))
        value = format_value(fmean(worst["test"]))
        told.append(f"to {value} at {share} % ({worst['attack']}, {worst['user']} users)")
    return f"**Such liars beat `watchful`**: nDCG@10 falls {', '.join(told)}."


def at_share(matrix: Matrix, share: float) -> list[MatrixLine]:
    return [line for line in matrix.lines if line.share == share]


def worst_distance(matrix: Matrix, lines: Sequence[MatrixLine], rule: str) -> float:
    """Over users."""
    found = [distance(matrix, line, rule, user) for line in lines for user in matrix.users]
    return min(value for value in found if value is not None)


def show_loss(distance: float) -> str:
    return format_value(-distance)


def share_of_updates(by_user: Row | None) -> str:
    """Mean over users."""
    return f"{100 * fmean(by_user.values()):.1f} %" if by_user else "–"


def expelled(data: Path, *, heavy: bool = False) -> str:
    """Where clients differ and nobody lies; heavy: where one searches far more often than the others."""
    header = ["clients", "user", "verdict", "n", "mean", "`watchful` minus mean", "honest updates left out"]
    lines = [
        [
            name_case(row),
            row["user"],
            row["verdict"],
            str(row["n"]),
            format_value(row["average"]),
            f"{format_signed(row['gap'], decimals=4)} ± {row['error']:.4f}".replace("0.", "."),
            f"{100 * row['left_out']:.1f} %",
            *("–" if row[p] is None else format_p(row[p]) for p in ("p_equal", "p_not_lower")),
        ]
        for row in expelled_rows(data, heavy=heavy)
    ]
    return make_markdown([*header, "p, equal within .003", "p, not lower by .003"], lines, n_words=3)


def expelled_rows(data: Path, *, heavy: bool = False) -> list[Row]:
    return [row for row in read(data, "expelled")["rows"] if row["case"].endswith(" times") == heavy]


def name_case(row: Row) -> str:
    return row["case"] + (", own labels" if row["labels"] == "own" else "")


def expelled_verdict(data: Path) -> str:
    """How many rows show something, and which do not."""
    rows = expelled_rows(data)
    of = {name: [row for row in rows if row["verdict"] == name] for name in VERDICTS}
    tested = [row for row in rows if row["p_equal"] is not None]
    parts = [
        f"Of {len(rows)} rows, {len(of['nobody judged'])} have fewer than five clients: `watchful` judges nobody there "
        "and is the mean, so that these rows show nothing about it.",
    ]
    if of["same bits"]:
        parts.append(f"In {len(of['same bits'])} it left nobody out and shortened nothing: the same bits.")
    parts.append(
        f"The other {len(tested)} are tested. Equal within .003: {len(of['equal'])}; not shown to be equal, but not "
        f"lower by .003: {len(of['not lower'])}; lower by more than that: {len(of['lower'])}; nothing shown: "
        f"{len(of['not shown'])} (p corrected for {len(tested)} rows, Bonferroni)."
    )
    if of["lower"]:
        parts.append(f"Lower: {list_rows(of['lower'])}.")
    if of["not shown"]:
        errors = [row["error"] for row in of["not shown"]]
        parts.append(
            f"Not shown: {list_rows(of['not shown'])}. In these the difference has a standard error of "
            f"{format_value(min(errors), decimals=4)} to {format_value(max(errors), decimals=4)}."
        )
    return " ".join(parts)


def expelled_by_chance(data: Path) -> str:
    """How far any change moves rankers that learn nothing: `watchful`, and leaving out updates at random."""
    told, more = [], []
    for row in (row for row in expelled_rows(data) if "by_chance" in row and not row["same_bits"]):
        chance, deviation = row["by_chance"], row["error"] * row["n"] ** 0.5
        told.append(
            f"{row['user']} users {format_signed(chance['gap'], decimals=4)} with a standard deviation of "
            f"{format_value(chance['deviation'])} over {row['n']} trainings, `watchful` "
            f"{format_signed(row['gap'], decimals=4)} with {format_value(deviation)} (p of `watchful` less averaging "
            f"{format_p(paired_t_test(row['watchful'], row['mean']).p)}, less leaving out at random "
            f"{format_p(chance['p'])})"
        )
        more += [row["user"]] if chance["p"] < LEVEL else []
    verdict = (
        f"For {' and '.join(more)} users that is more than chance: updates of those who are doubted are shortened even "
        "where clients agree on nothing, which moves the balance between labels."
        if more
        else "None of these differences can be told from chance."
    )
    return (
        "With one label per client (`labels-1`) clients learn nothing: a ranker is no better than the first one, and "
        "any change moves it. Leaving out .3 % of the updates at random, about as many as `watchful` left out, "
        f"changes the quality for {'; for '.join(told)}. {verdict} No margin of .003 can be shown among rankers that "
        "differ so much."
    )


def expelled_price(data: Path) -> str:
    """What `watchful` costs where honest clients with tastes of their own are left out, by both kinds of labels."""
    of_taste = (row for row in expelled_rows(data) if row["case"] == "intents, carry .5, 12 clients")
    rows = {row["labels"]: row for row in of_taste if row["user"] == "perfect"}
    union, own = rows["everybody's"], rows["own"]
    p = paired_t_test(union["watchful"], union["mean"]).p
    side = "inside" if abs(union["gap"]) < EXPELLED_MARGIN else "outside of"
    known = {"equal": "equal within .003", "not lower": "not lower by .003", "lower": "lower by more than .003"}
    shown = known.get(union["verdict"], f"the mean is {side} the margin of .003, and no test decides it")
    by_own = "it is equal within .003" if own["verdict"] == "equal" else "that is not shown to be within .003"
    return (
        f"**A price {'was found' if p < LEVEL else 'may be paid'} in one place**: twelve clients with intents and "
        f"perfect users. There `watchful` leaves "
        f"out {union['left_out']:.1%} of the updates, all of them honest. By everybody's labels, the union of the "
        f"intents, this changes nDCG@10 by {format_signed(union['gap'], decimals=4)} ± "
        f"{format_value(union['error'], decimals=4)} ({union['n']:,} trainings, p of a difference {format_p(p)}): "
        f"{shown}. By the clients' own labels {by_own}: {format_signed(own['gap'], decimals=4)} ± "
        f"{format_value(own['error'], decimals=4)} (p {format_p(own['p_equal'])})."
    )


def list_rows(rows: list[Row]) -> str:
    """`labels-2, 9 clients (informational); ...`"""
    users: dict[str, list[str]] = {}
    for row in rows:
        users.setdefault(name_case(row), []).append(row["user"])
    return "; ".join(f"{case} ({', '.join(found)})" for case, found in users.items())


def promoted(data: Path) -> str:
    """How far one liar of ten lifts documents, by rule: their mean rank, and how many are among the first ten."""
    rows = []
    for rule, found in read(data, "promote")["rules"].items():
        ranks = [f"{found[user]['promote/rank']:.1f}" for user in USERS]
        first = [f"{100 * found[user]['promote/top10']:.0f} %" for user in USERS]
        quality = [format_value(found[user]["offline/nDCG@10"]) for user in USERS]
        rows.append(["(nobody lies)" if rule == "nobody" else f"`{rule}`", *map(" / ".join, (ranks, first, quality))])
    return make_markdown(["`aggregation`", "mean rank", "among the first ten", "test nDCG@10"], rows)


def false_rewards(data: Path) -> str:
    """Liars of an evolution strategy: quality over the folds, and its difference from that with nobody lying."""
    rows = read(data, "false_rewards")["rows"]
    honest = rows[0]["test"]
    lines = []
    for row in rows:
        quality = [show_spread(fmean(values), stdev(values)) for values in row["test"].values()]
        gaps = [np.subtract(values, honest[user]) for user, values in row["test"].items()]
        changed = [
            f"{format_signed(fmean(gap))} ± {format_value(stdev(gap) / len(gap) ** 0.5)}" if gap.any() else "–"
            for gap in gaps
        ]
        lines.append([row["lie"], *quality, *changed])
    users = list(honest)
    header = ["lie", *(f"{user} users" for user in users), *(f"difference, {u}" for u in users)]
    return make_markdown(header, lines)


TABLES: Tables = {
    "attacks-false-rewards": false_rewards,
    "attacks-promoted": promoted,
    "attacks-setting": setting,
    "attacks-rules": by_rule,
    "attacks-chosen": chosen,
    "attacks-heat": heat,
    "attacks-judged-setting": judged_setting,
    "attacks-judged": judged,
    "attacks-judged-verdict": judged_verdict,
    "attacks-fang": fang,
    "attacks-many": partial(beside, name="attacks_many"),
    "attacks-versions": versions,
    "attacks-adaptive": partial(beside, name="attacks_adaptive", rules=(MEAN, "watchful")),
    "attacks-cycle": withstood,
    "attacks-cycle-verdict": withstood_verdict,
    "attacks-white-box": white_box,
    "attacks-white-box-verdict": white_box_verdict,
    "attacks-expelled": expelled,
    "attacks-expelled-heavy": partial(expelled, heavy=True),
    "attacks-expelled-verdict": expelled_verdict,
    "attacks-expelled-chance": expelled_by_chance,
    "attacks-expelled-price": expelled_price,
}
