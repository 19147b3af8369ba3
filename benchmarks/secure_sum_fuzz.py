"""Runs of a secure sum under a server that lies, with up to a third of the clients on its side; see `lying_server.py`.

    python -m benchmarks.secure_sum_fuzz --runs 10000 --json docs/benchmarks/secure_sum_fuzz.json

One run in a hundred has 60 clients that share with random neighbours, the others 6 to 10 that share with all. It ends
with status 1 if the server got both secrets of an honest client, a sum over too few honest ones, or anything twice.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.opened_sums import fuzz
from hushrank.files import write_json

BROKEN = (
    "both secrets",
    "sums too small",
    "opened by combining",
    "revealed twice",
    "older state accepted",
    "begun twice",
)
ODD = ("sum thought open, but is not", "stumbled")  # the judge or a client failed in a way that nobody meant
OTHERS = ("sums", "answered", "refused")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, help="of the first run; default: a fresh one")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where the numbers go, besides stdout")
    options = parser.parse_args(arguments)
    seed = secrets.randbits(31) if options.seed is None else options.seed
    found = report(seed, options.runs, n_workers=options.workers)
    if options.json:
        write_json(options.json, found)
    json.dump(found, sys.stdout, indent=2)
    return int(any(found[name] for name in (*BROKEN, *ODD)))


def report(seed: int, n_runs: int, *, n_workers: int = 1) -> dict[str, Any]:
    """Counts over all runs."""
    seeds = range(seed, seed + n_runs)
    with ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) as pool:
        total = sum(pool.map(fuzz_one, seeds, chunksize=50), Counter[str]())
    n_large = sum(map(is_large, seeds))
    return {
        "seed": seed,
        "runs": n_runs,
        "runs_with_neighbours": n_large,
        **{name: total[name] for name in (*BROKEN, *ODD, *OTHERS)},
    }


def fuzz_one(seed: int) -> Counter[str]:
    return fuzz(seed, is_large=is_large(seed))


def is_large(seed: int) -> bool:
    return seed % 100 == 99


if __name__ == "__main__":
    sys.exit(main())
