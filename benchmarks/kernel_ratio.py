"""How many times as fast as another checkout: both trained by turns on this machine, after they gave the same answers.

    python -m benchmarks.kernel_ratio --against ../before/src --json ratio.json
    python -m benchmarks.kernel_ratio --against ../before/src --data mq2008

Each source tree has a process of its own that keeps its compiled kernels. First both do the same rounds from the same
states; a round in which a near-tie was decided otherwise is counted. Then they train by turns, one thread each, and the
fastest of each one's timings are compared: other work on the machine only ever makes a timing slower. With --data two
more rows: training by the recipe `fpdgd` with its evaluation, and whole runs of `hushrank run fpdgd`, which also start
Python and write a report. CPU seconds are counted throughout.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

OWN = Path(__file__).parents[1] / "src"
COMPARED = (
    "fpdgd-mq2007-like-1000x4",
    "fpdgd-mq2007-like-10x5x15",
    "fpdgd-mslr-like-1000x2",
    "foltr-es-mq2007-like-2000x4",
)
ROUNDS = 20
TOLERANCE = 1e-6
SAME_QUALITY = 0.002  # Why: near-ties give other lists, and rankers that are as good


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"benchmarks; default: {', '.join(COMPARED)}")
    parser.add_argument("--against", type=Path, help="the `src` directory of the other checkout")
    parser.add_argument("--turns", type=int, default=15, help="timings of each side (default: 15)")
    parser.add_argument("--data", help="also compare whole runs on this data set")
    parser.add_argument("--json", type=Path, help="where to write the result")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.worker:
        return serve_training(chosen.data) if chosen.data else serve(chosen.names[0])
    if chosen.against is None or not (chosen.against / "hushrank").is_dir():
        parser.error("--against must be a directory with the package `hushrank` in it.")
    rows = [compare(name, chosen.against, turns=chosen.turns) for name in chosen.names or COMPARED]
    if chosen.data:
        rows += [compare_trainings(chosen.data, chosen.against), compare_runs(chosen.data, chosen.against)]
    report = {"processors": os.cpu_count(), "rows": rows}
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))
    return 0


def environment(source: Path) -> dict[str, str]:
    one = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {**os.environ, **one, "PYTHONPATH": str(source.resolve())}


class Side:
    """A process with one source tree and one benchmark, or training on one data set (--data)."""

    def __init__(self, source: Path, *what: str) -> None:
        command = [sys.executable, __file__, "--worker", *what]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process: Any = subprocess.Popen(command, env=environment(source), **pipes)  # type: ignore[call-overload]

    def ask(self, *words: object) -> Any:
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("one of the two processes ended; see its message above.")
        return json.loads(answer)

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def compare(name: str, against: Path, *, turns: int) -> dict[str, Any]:
    before, now = Side(against, name), Side(OWN, name)
    with tempfile.TemporaryDirectory() as folder:
        gaps = []
        for number in range(1, ROUNDS + 1):
            old, new = Path(folder, "old.npz"), Path(folder, "new.npz")
            start = Path(folder, "start.npz")
            before.ask("advance", number, str(start), str(old))
            now.ask("advance", number, str(start), str(new))
            gaps.append(gap(old, new))
            old.replace(start)
    others = sum(each >= TOLERANCE for each in gaps)
    if others > 1:
        raise ValueError(f"{name}: {others} of {ROUNDS} rounds differ from the other checkout's; not timed.")
    rates: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for side, found in zip((before, now), rates, strict=True):
            found.append(side.ask("time"))
    before.end()
    now.end()
    old_rate, new_rate = max(rates[0]), max(rates[1])
    return {
        "name": name,
        "per_cpu_second_before": round_rate(old_rate),
        "per_cpu_second": round_rate(new_rate),
        "ratio": round(new_rate / old_rate, 2),
        "largest_gap": float(f"{sorted(gaps)[-1 - others]:.1e}"),
        "rounds_with_a_near_tie": others,
    }


def round_rate(rate: float) -> int:
    return round(rate / 1000) * 1000


def gap(first: Path, second: Path) -> float:
    """The largest difference of a parameter."""
    with np.load(first) as a, np.load(second) as b:
        return float(np.abs(a["params"].astype(np.float64) - b["params"]).max())


def compare_trainings(data: str, against: Path, *, turns: int = 5) -> dict[str, Any]:
    """CPU seconds of training and evaluation, the least of some, after both gave rankers as good."""
    sides = (Side(against, "--data", data), Side(OWN, "--data", data))
    qualities = [side.ask()[1] for side in sides]
    if abs(qualities[0] - qualities[1]) > SAME_QUALITY:
        raise ValueError(f"nDCG@10 is {qualities[1]:.4f}, and {qualities[0]:.4f} in the other checkout; not timed.")
    seconds = [[side.ask()[0] for side in sides] for _ in range(turns)]
    for side in sides:
        side.end()
    before, now = (min(each) for each in zip(*seconds, strict=True))
    return describe_seconds(f"Recipe `fpdgd` on {Path(data).name}, training and evaluation", before, now)


def describe_seconds(name: str, before: float, now: float) -> dict[str, Any]:
    row = {"cpu_seconds_before": round(before, 2), "cpu_seconds": round(now, 2), "ratio": round(before / now, 2)}
    return {"name": name, **row}


def compare_runs(data: str, against: Path, *, turns: int = 3) -> dict[str, Any]:
    """CPU seconds of whole runs, the least of some."""
    spent: dict[Path, list[float]] = {against: [], OWN: []}
    for _ in range(turns + 1):
        for source, seconds in spent.items():
            with tempfile.TemporaryDirectory() as folder:
                command = ["-m", "hushrank", "run", "fpdgd", "--data", data, "--workers", "1", "--out", f"{folder}/run"]
                began = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(
                    [sys.executable, *command], env=environment(source), check=True, stdout=subprocess.DEVNULL
                )
                ended = resource.getrusage(resource.RUSAGE_CHILDREN)
                seconds.append(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime)
    least = {source: min(seconds[1:]) for source, seconds in spent.items()}  # Why not the first: it may compile
    return describe_seconds(
        f"Whole `hushrank run fpdgd` on {Path(data).name}, with start and report", least[against], least[OWN]
    )


def serve(name: str) -> int:
    """Answer a parent's questions with the package that is on the path."""
    from hushrank.machine.bench import count_rounds, find_benchmark, prepare_benchmark, time_call

    ready = prepare_benchmark(find_benchmark(name), device="cpu", engine="numba", threads=1)
    n_rounds = count_rounds(ready.advance, ready.start, 0.3)
    for line in sys.stdin:
        what, *rest = json.loads(line)
        answer: object = None
        if what == "advance":
            number, start, target = rest
            state = {**ready.start}
            if Path(start).exists():
                with np.load(start) as kept:
                    state |= dict(kept)
            after: dict[str, Any] = dict(ready.advance(state, number, 1)[0])
            np.savez(target, **after)
        else:
            n, _, cpu = time_call(ready.advance, ready.start, n_rounds)
            answer = n / cpu
        print(json.dumps(answer), flush=True)
    return 0


def serve_training(data: str) -> int:
    """Answer every line with the CPU seconds of one training, and its nDCG@10."""
    from hushrank.engine.simulate import Options, simulate
    from hushrank.recipes.recipe import NAMED, change_recipe
    from hushrank.recipes.resolve import resolve

    setting = resolve(change_recipe(NAMED["fpdgd"], {"data": data}))
    for _ in sys.stdin:
        began = time.process_time()
        results, _ = simulate(setting, Options(workers=1, engine="numba", device="cpu"))
        quality = float(np.mean([result.test[-1] for result in results]))
        print(json.dumps([time.process_time() - began, quality]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
