"""The reader on a LETOR file of about 500 MB, on one core: speed, memory, and the second load from the cache.

    python -m benchmarks.reader --json docs/benchmarks/reader.json

The file repeats the rows of a generated set under new query ids, in a temporary directory that is removed at the end.
Each step runs in a process of its own; imports are not timed, and the file is in the page cache.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.fresh import run_fresh
from hushrank.data.letor import read_letor
from hushrank.data.letor_write import write_letor
from hushrank.data.load import load_dataset
from hushrank.data.shapes import shape_named
from hushrank.data.synthetic import generate_queries
from hushrank.files import write_json
from hushrank.machine.bench import peak_memory
from hushrank.types import QuerySet

SHAPE = "mslr-like:n_queries=60"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--json", type=Path, help="where to write the result")
    parser.add_argument("--step", choices=["read", "load"], help="one step, in this process")
    parser.add_argument("--file", type=Path, help="of that step")
    arguments = parser.parse_args()
    if arguments.step:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        json.dump({"read": measure_reading, "load": measure_loading}[arguments.step](arguments.file), sys.stdout)
        return
    with tempfile.TemporaryDirectory() as directory:
        found = measure_all(Path(directory), arguments.megabytes)
    if arguments.json:
        write_json(arguments.json, found)
    print(json.dumps(found, indent=2))


def measure_all(directory: Path, megabytes: int) -> dict[str, Any]:
    data, environment = directory / "data", os.environ | {"HUSHRANK_DATA": str(directory / "root")}
    data.mkdir()
    make_files(data, megabytes)
    steps = [("read", data / "train.txt"), ("load", data), ("load", data)]
    read, first, second = (
        run_fresh("benchmarks.reader", "--step", step, "--file", str(path), environment=environment)
        for step, path in steps
    )
    return {"shape": SHAPE, **read, "first_load_s": first["seconds"], "second_load_s": second["seconds"]}


def make_files(data: Path, megabytes: int) -> None:
    """train.txt of the size asked for, one piece each for vali.txt and test.txt."""
    write_letor(generate_queries(shape_named(SHAPE)), data / "vali.txt")
    piece = (data / "vali.txt").read_bytes()
    (data / "test.txt").write_bytes(piece)
    with (data / "train.txt").open("wb") as file:
        for i in range(round(megabytes * 1e6 / len(piece))):
            file.write(piece.replace(b" qid:", b" qid:%d-" % i))


def measure_reading(path: Path) -> dict[str, Any]:
    began = time.perf_counter()
    queries = read_letor(path)
    seconds = time.perf_counter() - began
    megabytes = path.stat().st_size / 1e6
    return {
        "megabytes": round(megabytes, 1),
        "n_documents": queries.n_documents,
        "n_features": queries.n_features,
        "seconds": round(seconds, 2),
        "megabytes_per_second": round(megabytes / seconds, 1),
        "arrays_mb": round(count_bytes(queries) / 1e6, 1),
        "peak_memory_mb": round(peak_memory() / 1e6, 1),
        "peak_over_arrays": round(peak_memory() / count_bytes(queries), 2),
    }


def measure_loading(directory: Path) -> dict[str, Any]:
    began = time.perf_counter()
    load_dataset(str(directory))
    return {"seconds": round(time.perf_counter() - began, 2)}


def count_bytes(queries: QuerySet) -> int:
    return int(queries.features.nbytes + queries.grades.nbytes + queries.starts.nbytes)


if __name__ == "__main__":
    main()
