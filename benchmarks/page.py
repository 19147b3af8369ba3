"""Write docs/performance.md from the measurements in docs/benchmarks.

    python -m benchmarks.page            write it
    python -m benchmarks.page --check    exit with 1 when it is stale

`python -m benchmarks.measure` takes the measurements. `h200.json`, the output of `hushrank bench --json` on that GPU,
may be missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.roofline import WORK, describe_gpu_limits, describe_limits
from benchmarks.scale import format_table

DATA = Path(__file__).parents[1] / "docs" / "benchmarks"
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
NOTE = "<!-- Written by benchmarks/page.py from docs/benchmarks. Measure again, then run it again. -->"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--page", type=Path, default=PAGE)
    chosen = parser.parse_args(arguments)
    text = describe_performance(chosen.data)
    is_stale = not chosen.page.exists() or chosen.page.read_text(encoding="utf-8") != text
    if chosen.check and is_stale:
        print(f"{chosen.page.name} is stale: run python -m benchmarks.page and commit what it writes.")
    elif is_stale:
        chosen.page.write_text(text, encoding="utf-8")
    return int(chosen.check and is_stale)


def describe_performance(data: Path) -> str:
    """The whole page."""
    processor, scale, reader, limits = (read(data, name) for name in ("processor", "scale", "reader", "limits"))
    rows = processor["benchmarks"]
    table = format_benchmarks([*rows, *read_speeds(data, "per_cpu_second", known=rows)])
    parts = [NOTE, "# Performance", _INTRODUCTION, "## The processor", table, _COLUMNS]
    ratios = read(data, "kernel_ratio")["rows"]
    parts += ["### The loop in vectors", _VECTORS, format_before(ratios)]
    parts += [describe_rest(ratios, read(data, "kernel_limits"))]
    parts += ["### Networks", _NETWORKS, format_engines(read(data, "engine_ratio")["rows"])]
    parts += [
        "## Against the published code",
        *describe_ratios(read(data, "published_speed"), read(data, "speed_ratio")),
    ]
    parts += describe_gpu(data)
    parts += ["## From a thousand clients to a million", _SCALE, format_table(scale["scale"])]
    parts.append(describe_growth(scale["scale"]))
    parts += ["## Reading files", describe_reader(reader)]
    parts += ["## How far from the limit", *describe_limits(rows, limits), *describe_h200_limits(data)]
    parts += ["## How the numbers were taken", _METHOD]
    return "\n\n".join(parts) + "\n"


def read(data: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data / f"{name}.json").read_text(encoding="utf-8"))
    return found


def read_speeds(data: Path, kind: str, *, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of evolution strategies of which only the speed was kept, as long as no whole measurement is there."""
    names = {row["name"] for row in known}
    rows = read(data, "evolution_speed")["rows"]
    return [
        {"name": row["name"], f"interactions_{kind}": row[f"gpu_{kind}" if kind == "per_second" else kind]}
        for row in rows
        if row["name"] not in names
    ]


def format_benchmarks(rows: list[dict[str, Any]]) -> str:
    header = "| benchmark | engine | per CPU-second | per second | lowest to highest | ready in | memory |"
    lines = [
        f"| `{row['name']}` | {show(row, 'engine', '`{}`')} | {row['interactions_per_cpu_second']:,} | "
        f"{show(row, 'interactions_per_second', '{:,}')} | {show_spread(row)} | "
        f"{show(row, 'compile_s', '{} s')} | {show(row, 'peak_memory_mb', '{:,} MB')} |"
        for row in rows
    ]
    return "\n".join([header, "| --- | --- | ---: | ---: | ---: | ---: | ---: |", *lines])


def format_before(rows: list[dict[str, Any]]) -> str:
    """What two versions do of the same benchmark in a CPU-second."""
    lines = [
        f"| `{row['name']}` | {row['per_cpu_second_before']:,} | {row['per_cpu_second']:,} | {row['ratio']} |"
        for row in rows
        if "per_cpu_second" in row
    ]
    whole = [
        f"\n{row['name']}: {row['cpu_seconds_before']} CPU-seconds before, {row['cpu_seconds']} now, "
        f"{row['ratio']} times as fast."
        for row in rows
        if "cpu_seconds" in row
    ]
    return "\n".join(["| benchmark | before | now | times |", "| --- | ---: | ---: | ---: |", *lines, *whole])


def describe_rest(rows: list[dict[str, Any]], limits: dict[str, Any]) -> str:
    """What the loop in vectors spends its time on."""
    parts, wide = limits["parts_ns"], "fpdgd-mslr-like-1000x2"
    rate, work = next(row["per_cpu_second"] for row in rows if row["name"] == wide), WORK[wide]
    return (
        f"With one search per client, it takes {sum(parts.values()):,} ns on `mq2007-like`: {parts['scores']} for "
        f"scores, {parts['draws']} for the list's draws, {parts['list']} for the list, and "
        f"{parts['clicks_and_learning']} for keys, clicks, learning and "
        "what begins and ends a client's round (`python -m benchmarks.limits`). The "
        "features of that set are in the cache, and lists are short; we have not counted what these steps wait for. "
        f"`{wide}` reads {work.n_bytes / 1e3:.0f} KB of features for a search, {rate * work.n_bytes / 1e9:.0f} GB per "
        f"second at the speed above, where copying reads and writes {limits['copy_gb_per_second']} GB per second: "
        "scores are most of its time, and they wait for memory. Training on MQ2008 gains less than `1000x4`: its "
        "lists have 20 documents, so that more of a search is work that does not depend on their length, and its time "
        "includes evaluation and what NumPy does between the rounds."
    )


def format_engines(rows: list[dict[str, Any]]) -> str:
    """What both engines do of the same benchmark in a CPU-second."""
    lines = [
        f"| `{row['name']}` | {row['per_cpu_second']['numba']:,} | {row['per_cpu_second']['xla']:,} | {row['times']} |"
        for row in rows
    ]
    return "\n".join(["| benchmark | `numba` | `xla` | times |", "| --- | ---: | ---: | ---: |", *lines])


def show(row: dict[str, Any], key: str, form: str) -> str:
    """Nothing where nothing was kept."""
    return form.format(row[key]) if key in row else ""


def show_spread(row: dict[str, Any]) -> str:
    return "{:,} to {:,}".format(*row["spread_per_second"]) if "spread_per_second" in row else ""


def describe_ratios(published: dict[str, Any], measured: dict[str, Any]) -> list[str]:
    """Ratios of one machine, and what our side measures today beside rates that were recorded apart."""
    together = [
        f"| {row['training']} | {show_range(row.get('published'))} | {show_range(row.get('ours'))} | "
        f"**{row['ratio']}** ({show_range(row['spread'])}) |"
        for row in published["side_by_side"]["rows"]
    ]
    apart = [describe_apart(rows) for rows in zip(*(run["rows"] for run in measured["runs"]), strict=True)]
    return [
        _SIDE_BY_SIDE,
        "\n".join([_TOGETHER, *together]),
        _APART,
        "\n".join([_ALONE, *apart]),
        _ONE_RUN,
    ]


def describe_apart(rows: Sequence[dict[str, Any]]) -> str:
    """A line of one benchmark, over all runs."""
    medians = "; ".join(format(row["per_cpu_second"], ",") for row in rows)
    ours = find_ends(row["spread"] for row in rows)
    theirs = find_ends(row["published"]["per_cpu_second"] for row in rows)
    ratio = find_ends(row["published"]["spread"] for row in rows)
    return f"| `{rows[0]['name']}` | {medians} | " + " | ".join(map(show_range, (ours, theirs, ratio))) + " |"


def find_ends(ranges: Iterable[list[float]]) -> list[float]:
    """The lowest and the highest of all."""
    lows, highs = zip(*ranges, strict=True)
    return [min(lows), max(highs)]


def show_range(ends: list[float] | None) -> str:
    """`1,400 to 1,900`, `1,100`, or nothing."""
    return " to ".join(f"{end:,.0f}" for end in dict.fromkeys(ends or ()))


def describe_gpu(data: Path) -> list[str]:
    """The GPU's table, or that there is none."""
    title = "## A GPU"
    if not (data / "h200.json").exists():
        return [
            title,
            "No measurement on a GPU lies beside this page yet: `hushrank bench --device gpu --json` takes it.",
        ]
    rows = read(data, "h200")["benchmarks"]
    speeds = read_speeds(data, "per_second", known=rows)
    lines = [
        f"| `{row['name']}` | {row['interactions_per_second']:,} | {show_spread(row)} | "
        f"{show(row, 'compile_s', '{} s')} | {row.get('device', rows[0]['device'])} |"
        for row in [*rows, *speeds]
    ]
    header = [
        "| benchmark | per second | lowest to highest | ready in | device |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    return [title, "\n".join([*header, *lines]), *describe_gpu_kernel(data)]


def describe_gpu_kernel(data: Path) -> list[str]:
    """What one kernel for a client's whole round gains, and what is left."""
    lines = [
        f"| `{row['name']}` | {row['before']:,} | {row['now']:,} | {row['times']} | "
        f"{row['microseconds_per_round']} | {row['microseconds_in_kernel'] or ''} | {row['lists']} | {row['form']} |"
        for row in read(data, "gpu_kernel")["rows"]
    ]
    header = [
        "| benchmark | before, per second | now, per second | times | a round, in us | in the kernel | lists | form |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- | --- |",
    ]
    return ["### One kernel for a client's round", _GPU_KERNEL, "\n".join([*header, *lines]), _GPU_BOUND]


def describe_h200_limits(data: Path) -> list[str]:
    return describe_gpu_limits(read(data, "h200")["benchmarks"]) if (data / "h200.json").exists() else []


def describe_growth(rows: list[dict[str, Any]]) -> str:
    """How time grows with the clients, engine by engine."""
    sentences = []
    for engine in dict.fromkeys(row["engine"] for row in rows):
        ours = [row for row in rows if row["engine"] == engine]
        steps = [large["seconds"] / small["seconds"] for small, large in pairwise(ours)]
        clients = ours[-1]["n_clients"] // ours[0]["n_clients"]
        sentences.append(
            f"With `{engine}`, {clients:,} times the clients take {ours[-1]['seconds'] / ours[0]['seconds']:,.0f} "
            f"times the time, and each tenfold step {min(steps):.1f} to {max(steps):.1f} times."
        )
    return " ".join(sentences)


def describe_reader(reader: dict[str, Any]) -> str:
    return (
        f"A LETOR file of {reader['megabytes']:,.0f} MB ({reader['n_documents']:,} documents, {reader['n_features']} "
        f"features, dense, six decimals) is read in {reader['seconds']} s on one core: "
        f"**{reader['megabytes_per_second']:.0f} MB per second**. The whole process peaks at "
        f"{reader['peak_memory_mb']:,.0f} MB, {reader['peak_over_arrays']} times the arrays. `load_dataset` takes "
        f"{reader['first_load_s']} s the first time, digests and writing the cache included, and "
        f"**{reader['second_load_s']} s** the second time, from the cache (imports excluded, files in the page cache)."
    )


_INTRODUCTION = """\
How fast the [simulator](engine.md) is, what it costs in memory, and how far it is from what the hardware could do.
An *interaction* is one person's search: a query is drawn, its documents are scored, a list is sampled, shown and
clicked on, and the client learns. `hushrank bench` measures the same on your machine."""

_COLUMNS = """\
Two shared cores of an AMD EPYC (Zen 3, AVX2). `1000x4` is 1,000 clients with 4 interactions a round, `10x5x15`
fifteen trainings of 10 clients with 5 interactions in one program, `mlp64` and `mlp10` networks with so many hidden
units, all others are linear. *Ready in* is the time until the first round is done, with compiled code from the cache
on the disk; the very first time the loop takes 12 to 14 s to compile and the network's program 8 to 10 s. *Memory* is
the largest resident size of the whole process, data and libraries included. Each row is one run of a benchmark on its
own. Shared cores make runs differ: over six of them the median of `1000x4` was 207,000 to 263,000 per CPU-second, of
`mslr-like` 76,000 to 98,000, of the network 22,000 to 31,000. Of rows with empty cells only the speed was kept,
rounded (`evolution_speed.json`)."""

_VECTORS = """\
The rows above were taken with an earlier loop, which computed logarithms and exponentials one by one. The loop now
works on sixteen numbers at once ([how](engine.md)). Both versions ran on another machine (Zen 4, AVX-512) by turns, on
one thread each, from equal states, while other work ran there: interactions per CPU-second in the best of the turns,
and their ratio. Lists are the same but for near-ties, where scores that were summed in another order differ in their
last bit. `python -m benchmarks.kernel_ratio --against SRC` measures it anew."""

_NETWORKS = """\
The row of `mlp64` above was taken with `xla`, before networks had a fused loop of their own. Here both engines ran on
another machine (Zen 4, AVX-512), by turns and on one thread each, while other work ran there: interactions per
CPU-second in the best of the turns, and their ratio. `python -m benchmarks.engine_ratio` measures it anew."""

_GPU_KERNEL = """The rows above were taken when XLA made some eighty kernels of a round, each of which waited for
the one before. Now all that a client does in a round is one kernel ([how](engine.md)), and rounds in a row are one
graph that the GPU runs by itself. Every version first gave the plain round's answer. *Form* says which form of the
kernel a row was measured with. *Present* and *second* were measured side by side with *before*, *first* apart from it;
10,000 clients and `mslr-like` have not been timed with the present form."""
_GPU_BOUND = """What limits them (`python -m benchmarks.gpu_profile`; all variants are in
`docs/benchmarks/gpu_kernel.json`): a round of 1,000 linear clients spends two thirds of its time in the kernel and one
third in some twenty small kernels and copies that sample, name keys and add up; 15 small trainings likewise. 10,000
clients spend nine tenths of it in the kernel (286 of 319 us with tiles of 64), and there lists that are merged tile by
tile are slower, 71 instead of 142 million a second: they take more instructions. For 15 small trainings merging was
faster, 12.0 instead of 10.7 million (first form). `mslr-like` spends two thirds in the kernel.

A network spends nine tenths of a round in the kernel. Its present form takes a third of the instructions of the second,
as compiled, and is no faster: 16.0 million a second with two warps for a client, 11.6 with one, where the second form
had 16.0 with four. So it is not the number of instructions that limits it. A thousand clients are eight for each of 132
multiprocessors; a client's searches follow one another, and so do the ten results of a list and the places between two
of them. What remains is waiting, which more clients at once would hide; which instructions wait has not been measured.
Tiles of 16 or 64 documents, eight warps, and products in six parts of bfloat16 were slower."""
_SIDE_BY_SIDE = """\
How many times the interactions per CPU-second of the research code that was published with the papers, training only.
Both codes ran on **one machine**, by turns, one thread each, on fold 1 of the real MQ2007. The ratio is the median of
the turns, with the lowest and the highest; where two cells are empty, only the ratio was kept."""

_TOGETHER = """\
| training | published, per CPU-second | hushrank, per CPU-second | times the published code |
| --- | ---: | ---: | ---: |"""

_APART = """\
`python -m benchmarks.speed_ratio` measures our side anew: one thread, on generated data in the shape of MQ2007, the
benchmarks by turns, after every engine has given the plain round's answer. Beside it stand speeds of the published
code that were recorded **apart from ours**, on one core of a two-core machine and on data of the same shape. The last
column is the least and the most that both ranges allow, over all runs. Runs were taken while other work kept the cores
busy, and differ more from each other than turns within one do. Where both tables have a row, trust the first. To
compare on your own machine, measure the published code there and give its speed with `--published-rate NAME=RATE`."""

_ALONE = """\
| benchmark | hushrank, median of each run | lowest to highest | published, recorded apart | times, not side by side |
| --- | ---: | ---: | ---: | ---: |"""

_ONE_RUN = """\
One run of 10 clients x 5 is slower than 1,000 x 4. It has only 50 interactions a round, so the fixed cost of a round
probably weighs more; that was not measured apart. `10x5x15` trains fifteen runs in one program. The published code
trains them one after another, so its speed is that of one run."""

_SCALE = """\
One round in which every client makes one search, `mq2007-like`, linear, each size in a process of its own. Clients
are worked on in blocks, so memory hardly grows with their number. The rows of `xla` were taken while
other work ran on the machine."""

_METHOD = """\
- **Equal answers first.** A benchmark runs one round and the same round [plainly](round.md), and refuses to time an
  engine whose parameters differ by 2e-5 or more.
- **Training only, after compilation.** Timed are whole rounds: the named draws, queries, lists, clicks, learning,
  aggregation and online nDCG. Reading data, compiling, offline evaluation and checkpoints are not.
- **Median of seven** timings of about a second, after a warm-up, with the lowest and the highest beside it. The
  machine is shared and virtual: expect a fifth more or less from one hour to the next.
- **CPU-seconds** are those of all threads of the process, so that a second core does not count as speed.
- Everything is generated data of a fixed seed, and each row of the processor's tables comes from a process of its
  own. `python -m benchmarks.measure` takes all numbers of this page but those of the GPU and of the published code, as
  JSON in `docs/benchmarks`, and a test fails when the page does not follow from these files."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
