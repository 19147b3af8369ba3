"""Bytes and operations of one interaction against what the hardware can move and compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_LANES, _PER_CYCLE = 8, 2  # AVX2: float32 or uint32 numbers in a vector, vector operations begun in a cycle
_THREEFRY = 105  # operations of a block: 20 rounds of add, two shifts, or, exclusive or; keys on top
_LOGARITHM = 20  # operations: exponent, mantissa, a polynomial of degree 8 or so
_NAMED_BLOCKS = 27  # four keys of four blocks, the query's draw, two times ten draws for clicks and leaving
_GPU_COPY = 4.3e12  # bytes per second of a copy within the memory of an H200, reading and writing counted


@dataclass(frozen=True, slots=True)
class Work:
    """What a mean interaction must do, padding left out."""

    length: float  # documents of a list
    n_features: int
    hidden: int = 0  # units of the network; 0: linear

    @property
    def n_bytes(self) -> float:
        """Of features, each read once."""
        return 4 * self.length * self.n_features

    @property
    def n_products(self) -> float:
        """Multiply-adds of the scores."""
        return self.length * (self.n_features * self.hidden + self.hidden if self.hidden else self.n_features)

    @property
    def n_blocks(self) -> float:
        """Threefry: two draws each, and the keys that name them."""
        return self.length / 2 + _NAMED_BLOCKS

    @property
    def n_operations(self) -> float:
        return self.n_products + _THREEFRY * self.n_blocks + _LOGARITHM * 2 * self.length


MQ2007 = Work(69623 / 1692, 46)
WORK = {
    "fpdgd-mq2007-like-1000x4": MQ2007,
    "fpdgd-mq2007-like-10000x4": MQ2007,
    "fpdgd-mslr-like-1000x2": Work(120, 136),
    "fpdgd-mq2007-like-1000x4-mlp64": Work(MQ2007.length, MQ2007.n_features, 64),
}


def describe_limits(rows: list[dict[str, Any]], limits: dict[str, Any]) -> list[str]:
    """The processor's part of the page."""
    copy, clock = limits["copy_gb_per_second"], limits["clock_ghz"]
    most = clock * 1e9 * _LANES * _PER_CYCLE
    lines = [
        f"| `{row['name']}` | {work.n_bytes / 1e3:,.1f} KB | {work.n_operations:,.0f} | "
        f"{share(row['interactions_per_cpu_second'] * work.n_bytes, copy * 1e9)} | "
        f"{share(row['interactions_per_cpu_second'] * work.n_operations, most)} |"
        for row in rows
        if (work := WORK.get(row["name"]))
    ]
    header = "| benchmark | features read | operations | of the bandwidth | of the arithmetic |"
    return [
        _COUNTS,
        f"One core copies {copy} GB per second (reading and writing counted) and runs at {clock} GHz; with vectors of "
        f"eight numbers, two operations a cycle, that is {most / 1e9:.0f} billion operations per second. Per "
        "interaction, and reached per core:",
        "\n".join([header, "| --- | ---: | ---: | ---: | ---: |", *lines]),
        *describe_parts(limits),
    ]


def share(value: float, most: float) -> str:
    return f"{100 * value / most:.1f} %"


def describe_parts(limits: dict[str, Any]) -> list[str]:
    """Where the time goes, part by part."""
    parts, length = limits["parts_ns"], limits["mean_length"]
    total = sum(parts.values())
    what = {
        "scores": f"{length * limits['n_features']:,.0f} multiply-adds, in vectors",
        "draws": f"{length / 2:.0f} Threefry blocks",
        "list": f"{2 * length:.0f} logarithms and the ten largest of the sums",
        "clicks_and_learning": "keys, clicks, nDCG, masses of what is left, pairs, gradient, sum",
    }
    lines = [
        f"| {name.replace('_', ' ')} | {what[name]} | {ns:,} ns | {share(ns, total)} |" for name, ns in parts.items()
    ]
    table = ["| part | work | time | share |", "| --- | --- | ---: | ---: |", *lines]
    return [
        f"Where the {total / 1e3:.1f} microseconds of a linear interaction on `mq2007-like` go, on one core (200,000 "
        "clients x 1 interaction):",
        "\n".join(table),
        _LEFT.format(megabytes=limits["features_mb"]),
    ]


def describe_gpu_limits(rows: list[dict[str, Any]]) -> list[str]:
    """The GPU's part of the page."""
    lines = [
        f"| `{row['name']}` | {row['interactions_per_second']:,} | {_GPU_COPY / work.n_bytes / 1e6:,.0f} million | "
        f"{share(row['interactions_per_second'] * work.n_bytes, _GPU_COPY)} |"
        for row in rows
        if (work := WORK.get(row["name"]))
    ]
    header = "| benchmark | interactions per second | limit of the bandwidth | reached |"
    return [_GPU, "\n".join([header, "| --- | ---: | ---: | ---: |", *lines])]


_COUNTS = f"""\
A mean list of `mq2007-like` has {MQ2007.length:.0f} documents of {MQ2007.n_features} features in float32. An
interaction must read {MQ2007.n_bytes / 1e3:.1f} KB, and compute {MQ2007.n_products:,.0f} multiply-adds for the
scores, {2 * MQ2007.length:.0f} logarithms for the sampled list, about {MQ2007.n_blocks:.0f} blocks of Threefry of
some {_THREEFRY} operations each ({MQ2007.length / 2:.0f} for the list's draws, {_NAMED_BLOCKS} for the keys that
name every draw, for the query and for the person), and for what was clicked at most 25 pairs of a clicked and an
unclicked document. The table counts scores, draws and logarithms (at {_LOGARITHM} operations); pairs and gradient
depend on the clicks and come on top."""

_LEFT = """\
The features of the training queries are {megabytes} MB and fit into the processor's last cache of 32 MB, so memory
does not bind `mq2007-like`; `mslr-like`, far larger than that cache, comes nearest to the bandwidth. What bound here
was arithmetic outside vectors: logarithms and exponentials were called one by one, and every draw had a key of its
own. All of this section was taken before the loop worked in vectors (*The loop in vectors*, above); it says where that
loop spent its time. The network's row was taken with XLA, where every client has weights of its own: many small matrix
products instead of one large one, each step's numbers written to memory, and lists padded."""

_GPU = f"""\
An H200 copies {_GPU_COPY / 1e12} TB per second within its memory. If every interaction had to fetch its features
from there, this would be the most; the features of `mq2007-like` fit into the second-level cache of 60 MB, so that
its limit is softer:"""
