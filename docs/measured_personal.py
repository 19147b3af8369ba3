"""Tables of docs/howto/personalised-search.md: what noise costs, and how fast clients are trained."""

from __future__ import annotations

from pathlib import Path

from tables import Row, Tables, make_markdown, read

from hushrank.look.numbers import format_count, format_p, format_short, format_signed, format_value

PROTECTIONS = {"original": "the engine's own order", "none": "`privacy=none`"}


def private_search(data: Path) -> str:
    """MAP with noise beside the same training without it, and what the noise guarantees."""
    found = read(data, "private_search")
    training, sound = found["training"], next(row for row in found["rows"] if row["protection"] == "sound")
    said = (
        f"The users are `{found['data']}`. The model is `{training['model']}` with `word_dim={training['word_dim']}`; "
        f"all {training['cohort']} clients take part in each of {training['rounds']} steps. Epsilon, with delta "
        f"{sound['delta']:g}, is that of one client with all its searches over all {sound['rounds']} rounds, against "
        f"everybody but the server (`{sound['adjacency']}`). MAP is that of the last model."
    )
    rows = [
        [
            PROTECTIONS.get(row["protection"], f"`privacy=sound`, epsilon {format_short(row['asked_epsilon'] or 0)}"),
            format_value(row["MAP"]),
            format_signed(row.get("difference_of_users")) if "p" in row else "",
            format_p(row["p"]) if "p" in row else "",
        ]
        for row in found["rows"]
    ]
    return f"{said}\n\n" + make_markdown(["training", "MAP, by searches", "difference, by users", "p"], rows)


def speed(data: Path) -> str:
    """On the processor, and on a GPU where one was measured."""
    names = ("personal_speed", "personal_speed_gpu")
    found = [row for name in names if (data / f"{name}.json").exists() for row in read(data, name)["personal_speed"]]
    header = ["users", "list", "K", "device", "users per second", "per CPU-second", "first step, CPU", "memory"]
    return make_markdown(header, [describe_speed(row) for row in found], n_words=0)


def describe_speed(row: Row) -> list[str]:
    rates = (row.get("users_per_second"), row.get("users_per_cpu_second"))
    return [
        f"{row['n_users']:,}",
        str(row["list_size"]),
        f"{row['cohort']:,}",
        row["device"],
        *("" if rate is None else format_count(rate) for rate in rates),
        f"{row['first_step_cpu_s']:.0f} s",
        f"{row['peak_memory_mb']:,} MB",
    ]


TABLES: Tables = {"private-search": private_search, "personal-speed": speed}
