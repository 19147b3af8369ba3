"""Tables of docs/findings.md about personalised search [fedps]; sentences with numbers: `measured_fedps_said.py`."""

from __future__ import annotations

from pathlib import Path

from fedps_kept import (
    AOL,
    COMMERCIAL,
    LISTS,
    MAP,
    MODELS,
    Compared,
    compare,
    compare_federated,
    compare_knrm,
    compare_late,
    compare_searches,
    find_result,
    find_row,
    gain_of_knrm,
    gain_over_order,
    judge_again,
    read_light,
    signed,
)
from measured_chapter4 import list_parts
from measured_fedps_said import SAID, count_users
from shortened import is_in_part, shorten_test, tell_verdict
from tables import Row, Tables, make_markdown, read, show_spread

from hushrank.look.numbers import NOT_KNOWN, format_count, format_p, format_signed, format_value

PARTS = {AOL: ("", 0), COMMERCIAL: ("", 0)}  # in the order of the page
_METHODS = {
    "original-order": "the search engine's own order",
    "knrm": "KNRM, not personal",
    "central": "all logs in one place",
    "fedps": "federated, flat",
    "group-user": "in one place, ids shared by 100 users",
    "cover-query": "in one place, cover queries mixed in",
    "fedps-flat": "federated, flat, a tenth late",
    "fedps-proxy": "federated, proxies, a tenth late",
}


def users(data: Path) -> str:
    """Those whom tests compare: users with a click in the test week."""
    rows = [row for row in read(data, "fedps_users")["rows"] if not row["lists"]]
    header = ["in the test week", *(f"population {row['population']}" for row in rows if row["data"] == AOL)]
    lines = []
    for part in (AOL, COMMERCIAL):
        own = [row for row in rows if row["data"] == part]
        lines.append([f"`{part}`: users who clicked, of {own[0]['n_users']}", *(str(r["n_measured"]) for r in own)])
        lines.append([f"`{part}`: their searches with a click", *(format_count(r["n_searches"]) for r in own)])
    return make_markdown(header, lines)


def claims(data: Path) -> str:
    """Every claim that was judged, on everything that it was run on."""
    rows: dict[str, list[list[str]]] = {}
    for part, result in list_parts(data, "fedps", PARTS):
        ran = f"`{part}`, {max(row['n'] for row in result['rows'])} populations: {count_users(data, part)}"
        every = (judge_again(result, claim) for claim in result["findings"])
        for claim in (claim for claim in every if claim["holds"] is not None or is_in_part(claim)):
            cells = [claim["claim"], ran, tell_verdict(claim), shorten_test(claim)]
            rows.setdefault(f"**`{result['name']}`** {result['shows']}.", []).append(cells)
    header = ["claim", "run on", "verdict", "how it was tested"]
    return "\n\n".join(text for name, cells in rows.items() for text in (name, make_markdown(header, cells, n_words=4)))


def quality(data: Path) -> str:
    """MAP of Table 3, and of the same users with lists of one length."""
    places = list(LISTS)
    cells: dict[tuple[str, str], list[str]] = {}
    for part in (AOL, COMMERCIAL):
        for row in find_result(data, part, "table3")["rows"]:
            if row["metric"] == MAP and row["ours"] is not None:
                found = cells.setdefault((_METHODS[row["method"]], (row.get("ranker") or "").upper()), ["–"] * 3)
                found[places.index((part, row.get("variant", "")))] = show_spread(row["ours"], row["std"])
    header = ["training", "model", *LISTS.values()]
    return make_markdown(header, [[*place, *found] for place, found in cells.items()], n_words=2)


def linear(data: Path) -> str:
    """What each way of ranking gains on the engine's order when all logs are in one place: by users."""
    rows = [[f"{m.upper()}", *(signed(gain_over_order(data, p, m).by_population) for p in PARTS)] for m in MODELS]
    rows.append(["KNRM, not personal", *(signed(gain_of_knrm(data, part)) for part in PARTS)])
    light = read_light(data)
    gains = [light[part, "central"]["ours"] - light[part, "original-order"]["ours"] for part in PARTS]
    rows.append(["linear ranker of 23 weights", *map(signed, gains)])
    return make_markdown(["model", *(f"`{part}`" for part in PARTS)], rows)


def gap(data: Path) -> str:
    """Federated less central training: by searches, as in the table of MAP, and by users, as it is tested."""
    header = [
        "lists",
        "model",
        "by searches",
        "by users",
        "margin, by users",
        "by users, populations 11, 12, 13",
        "p: equal",
    ]
    rows = []
    for (part, variant), words in LISTS.items():
        for model in MODELS:
            found, margin = compare_federated(data, part, variant, model)
            by_searches = compare_searches(data, part, variant, model)[0]
            rows.append([words, model.upper(), signed(by_searches), *tell_gap(found, margin)])
        knrm = compare_knrm(data, part, variant)
        cells = ["–", "not run", *["–"] * 3] if knrm is None else ["–", *tell_gap(*knrm)]
        rows.append([words, "KNRM", *cells])
    return make_markdown(header, rows, n_words=2)


def tell_gap(found: Compared, margin: float) -> list[str]:
    p = NOT_KNOWN if found.p is None else format_p(found.p)
    each = ", ".join(map(signed, found.populations))
    return [signed(found.difference), format_value(margin, decimals=4), each, p]


def trained(data: Path) -> str:
    """PEPS with each protection, less PEPS on all logs in one place."""
    ways = {
        "GroupUser: ids shared by 100 users": ("cover-queries-cost-nothing", "{} central over group-user", -1),
        "CoverQuery: cover queries mixed in": ("cover-queries-cost-nothing", "{} cover-query over central", 1),
        "FedPSFlat, nobody late": ("federated-equals-central", "{} fedps over central", 1),
    }
    rows = []
    for words, (id, name, sign) in ways.items():
        cells = []
        for part, variant in LISTS:
            found = compare(find_result(data, part, "table3"), id)
            pair = name.format(" ".join(filter(None, [part, "peps", variant])))
            cells.append(signed(sign * found[pair].difference))
        rows.append([words, *cells])
    late = [compare_late(data, *place) for place in LISTS]
    for way, words in {"fedps-flat": "FedPSFlat, a tenth late", "fedps-proxy": "FedPSProxy, a tenth late"}.items():
        rows.append([words, *(NOT_KNOWN if each[way] is None else signed(each[way]) for each in late)])
    return make_markdown(["PEPS", *LISTS.values()], rows)


def trained_said(data: Path) -> str:
    """What the two logs say of FedPS's price, by searches."""
    ways = {"central": "in one place", "fedps-flat": "flat with a tenth late", "fedps-proxy": "with proxies"}
    told = []
    for part in (AOL, COMMERCIAL):
        result = find_result(data, part, "table3")
        found = {words: find_row(result, method=way, ranker="peps") for way, words in ways.items()}
        values = ", ".join(f"{format_value(row['ours'], decimals=3)} {words}" for words, row in found.items())
        told.append(f"on `{part}` {values}")
    return f"Mean over searches, PEPS has these MAP: {'; '.join(told)}."


def weeks(data: Path) -> str:
    """MAP above the engine's order after each stage of Figure 4."""
    rows: dict[tuple[str, str], list[str]] = {}
    for row in find_result(data, AOL, "figure4")["rows"]:
        rows.setdefault((_METHODS[row["method"]], row["updating"]), []).append(format_signed(row["ours"], decimals=3))
    longer = read(data, "fedps_weeks")
    name = f"{_METHODS['central']}, {longer['rounds']} rounds a week instead of 2"
    rows[name, "retrain"] = [format_signed(gain, decimals=3) for gain in longer["gains"]]
    n_stages = max(map(len, rows.values()))
    header = ["training", "updating", *(f"week {stage}" for stage in range(1, n_stages + 1))]
    return make_markdown(header, [[*place, *found] for place, found in rows.items()], n_words=2)


def curve(data: Path) -> str:
    """MAP after each of some rounds of one training in one place."""
    found = read(data, "fedps_curve")
    shown = [i for i, round in enumerate(found["rounds"]) if round in (1, 2, 4, 8, 12, 16)]
    header = ["after round", *(str(found["rounds"][i]) for i in shown)]
    names = {"vali/MAP": "validation searches, lists of 5", MAP: "test searches, lists of 50"}
    rows = [[words, *(format_value(found[name][i]) for i in shown)] for name, words in names.items()]
    return make_markdown(header, rows)


def late(data: Path) -> str:
    """FedPSFlat and FedPSProxy where some clients are late, on populations of their own: by users."""
    rows = [
        [
            f"{row['late']:.0%}",
            f"{len(row['populations'])} x {found_users(row)}",
            format_value(row["flat"]),
            format_value(row["proxy"]),
            f"{format_signed(row['difference'])} ± {format_value(row['standard_error'])}",
            format_p(row["not_below"]["p"]),
            format_p(row["above"]["p"]),
        ]
        for row in read(data, "late_clients")["rows"]
    ]
    header = ["late", "populations x users who clicked in the test week", "flat", "proxies", "difference"]
    return make_markdown([*header, "p: not below", "p: differs"], rows, n_words=1)


def found_users(row: Row) -> int:
    """Users of a population who searched in the test week, on average."""
    return round(row["n_users"] / len(row["populations"]))


TABLES: Tables = {
    "fedps-users": users,
    "fedps-quality": quality,
    "fedps-linear": linear,
    "fedps-curve": curve,
    "fedps-gap": gap,
    "fedps-claims": claims,
    "fedps-weeks": weeks,
    "fedps-late": late,
    "query-trained": trained,
    "query-trained-said": trained_said,
    **SAID,
}
