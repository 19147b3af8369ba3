"""Tables and charts of docs/reconstruction.md: what an observer makes of an upload, mode by mode."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tables import Row, Tables, make_markdown, read

from hushrank.look.chart import AxisScale, ChartText, Line, Reference, line_chart
from hushrank.look.numbers import format_count, format_value

SEEN = {  # by an observer, as the page calls it
    "sound-server": "one update, before the server adds noise",
    "sound-clients-1000": "one update with 1 of 1,000 shares of noise",
    "sound-clients-100": "one update with 1 of 100 shares of noise",
    "secure-sum-noise-10": "the sum of 10, with their shares of noise",
    "secure-sum-noise-100": "the sum of 100, with theirs",
    "secure-sum-noise-1000": "the sum of 1,000, with theirs",
}
DRAWN = {  # {mode: short name at the end of its line}
    "paper": "paper",
    "sound-server": "server noise",
    "sound-clients-1000": "1 of 1,000 shares",
    "sound-clients-100": "1 of 100 shares",
    "secure-sum-noise-10": "sum of 10",
    "foltr-es": "FOLtR-ES",
}
QUERY, CLICKS = "query_top1_if_learnt", "told_query_f1"


def leaks(data: Path, *, ranker: str = "start", interactions: int | None = None) -> list[Row]:
    """Rows of one ranker; of one search per client, or two for an evolution strategy, unless told otherwise."""
    return [
        row
        for row in read(data, "reconstruction")["rows"]
        if row["ranker"] == ranker and row["interactions"] == (interactions or (2 if row["mode"] == "foltr-es" else 1))
    ]


def by_epsilon(data: Path, *, metric: str) -> str:
    rows = {(row["mode"], row["epsilon"]): row[metric] for row in leaks(data)}
    epsilons = list(dict.fromkeys(epsilon for mode, epsilon in rows if mode == "sound-server"))
    header = ["the observer sees", *("no noise" if e == "inf" else f"{e:g}".removeprefix("0") for e in epsilons)]
    return make_markdown(header, [[name, *(format_value(rows[m, e]) for e in epsilons)] for m, name in SEEN.items()])


def without_noise(data: Path) -> str:
    """Nothing protects, or the published noise does."""
    cases = [("start", 1, "the first round, 1 search"), ("start", 4, "the first round, 4 searches")]
    cases.append(("trained", 1, "after 50 rounds, 1 search"))
    lines = []
    for ranker, n, when in cases:
        (row,) = (row for row in leaks(data, ranker=ranker, interactions=n) if row["mode"] == "none")
        lines.append([f"the update, {when}", *show_leak(row)])
    for row in (row for row in leaks(data) if row["mode"] == "paper"):
        lines.append([f"with 1 of 1,000 shares of `paper`, stated epsilon {row['epsilon']:g}", *show_leak(row)])
    header = ["the observer sees", "query named", "by chance", "clicked documents", "query known", "uploads"]
    return make_markdown(header, lines)


def show_leak(row: Row) -> list[str]:
    numbers = (row[QUERY], row["query_top1_chance"], row["clicked_f1"], row[CLICKS])
    return [*map(format_value, numbers), format_count(row["n_trials"])]


def sums(data: Path) -> str:
    """Of updates as they are: what is said about one client, and about all of them together."""
    header = ["the sum of", "query of a given client", "of anybody", "by chance", "query known", "by chance"]
    names = ("query_top1", "query_of_anyone", "query_of_anyone_chance", CLICKS, f"{CLICKS}_chance")
    rows = [row for row in leaks(data) if row["mode"] == f"secure-sum-{row.get('n_summed')}"]
    return make_markdown(
        header, [[f"{row['n_summed']:,} clients", *(format_value(row[name]) for name in names)] for row in rows]
    )


def rewards(data: Path) -> str:
    """Messages of evolution strategies."""
    header = ["p", "epsilon of a search", "searches", "rewards read", "query named", "query known", "by chance"]
    lines = []
    for n in (2, 4):
        for row in (row for row in leaks(data, interactions=n) if row["mode"] == "foltr-es"):
            epsilon = "none" if row["epsilon"] == "inf" else f"{row['epsilon']:.1f}"
            numbers = (row["rewards_right"], row["query_top1"], row[CLICKS], row[f"{CLICKS}_chance"])
            lines.append([f"{row['p']:g}".removeprefix("0"), epsilon, str(n), *map(format_value, numbers)])
    return make_markdown(header, lines)


def chart(data: Path, *, metric: str, title: str) -> str:
    """Success against epsilon, each mode by its own kind of epsilon."""
    rows = leaks(data)
    lines = []
    for mode, name in DRAWN.items():
        found = [(row["epsilon"], row[metric]) for row in rows if row["mode"] == mode and row["epsilon"] != "inf"]
        lines.append(Line(name, tuple(x for x, _ in found), tuple(y for _, y in found), has_dots=True))
    (unprotected,) = (row[metric] for row in rows if row["mode"] == "none")
    text = ChartText(title, "epsilon, of the kind that the mode has", title)
    scale = AxisScale((0.1, 0.25, 0.5, 1, 2, 4.5, 10), is_log=True)
    references = [Reference("no protection", unprotected)]
    return line_chart(lines, text, name=f"leak-{metric.replace('_', '-')}", references=references, scale=scale)


TABLES: Tables = {
    "leaks-open": without_noise,
    "leaks-query": partial(by_epsilon, metric=QUERY),
    "leaks-clicks": partial(by_epsilon, metric=CLICKS),
    "leaks-sums": sums,
    "leaks-rewards": rewards,
    "leaks-query-chart": partial(chart, metric=QUERY, title="share of queries named"),
    "leaks-clicks-chart": partial(chart, metric=CLICKS, title="F1 of clicked documents, the query being known"),
}
