"""Tables of docs/howto/query-privacy.md: what an engine sees of a user, how well it guesses, what hiding costs."""

from __future__ import annotations

from pathlib import Path

from tables import Row, Tables, make_markdown, read, show_spread

from hushrank.look.numbers import NOT_KNOWN, format_count, format_value

WAYS = {  # as the page calls them
    "central": "central: one place has all logs",
    "group-user": "GroupUser: 100 users share an id",
    "cover-query": "CoverQuery: own log with covers in it",
    "fedps-flat": "FedPSFlat: covers, clicks stay at home",
    "fedps-proxy": "FedPSProxy: 100 users behind a relay",
    "no-clicks": "control: FedPSFlat without covers",
    "original-order": "the engine's own order",
}
METRICS = ("KL-divergence", "KL-divergence/epsilon", "offline/MAP")


def divergence(data: Path) -> str:
    """Of both stand-ins: both smoothings, and MAP."""
    found = {(row["data"], row["method"], row["metric"]): row for row in read(data, "queries")["table2"]["rows"]}
    header = ["way of searching", "KL", "printed", "KL, epsilon", "MAP, by users"]
    lines = []
    for name in dict.fromkeys(data for data, _, _ in found):
        lines.append([f"*{name}*", "", "", "", ""])
        for way, words in WAYS.items():
            rows = [found.get((name, way, metric)) for metric in METRICS]
            shown = [NOT_KNOWN if row is None else show_row(row) for row in rows]
            printed = rows[0]["published"] if rows[0] else None
            lines.append([words, shown[0], format_value(printed), *shown[1:]])
    return make_markdown(header, lines)


def show_row(row: Row) -> str:
    """With what is to be known of it."""
    return ", ".join(filter(None, [show_spread(row["ours"], row["std"]), row["why"]]))


def guessed(data: Path) -> str:
    shown = {"by_chance": "by chance", "right": "fit", "trained": "trained"}
    shown["trained_without_memory"] = "trained, no memory"
    rows = [[str(row["n_covers"]), *(f"{row[name]:.0%}" for name in shown)] for row in read(data, "queries")["guessed"]]
    return make_markdown(["covers", *shown.values()], rows, n_words=0)


def speed(data: Path) -> str:
    found = read(data, "queries")
    covers, relay = found["covers"], found["relay_ms"]
    rounds = relay["added_medians"]
    rows = [
        ["cover queries, one at a time as on a device", f"{format_count(covers['one_by_one_per_s'])} per second"],
        ["cover queries, a whole log at once", f"{format_count(covers['batched_per_s'])} per second"],
        ["a search on loopback, straight", f"{relay['straight_median']:.1f} ms"],
        ["the same through a relay", f"{relay['relayed_median']:.1f} ms"],
        ["what the relay adds to a search (quartiles)", tell_added(relay)],
        [f"its median in {len(rounds)} rounds", f"{min(rounds):.2f} to {max(rounds):.2f} ms"],
        *(
            [
                f"re-ranking 30 documents, {row['searches_in_log']} searches in the log",
                f"{row['median']:.0f} ms",
            ]
            for row in found["rerank_ms"]
        ),
    ]
    return make_markdown(["what (median)", "takes"], rows)


def tell_added(relay: Row) -> str:
    low, high = relay["added_quartiles"]
    return f"{relay['added_median']:.2f} ms ({low:.2f} to {high:.2f})"


TABLES: Tables = {"query-divergence": divergence, "query-guessed": guessed, "query-speed": speed}
