"""Take every number of docs/performance.md that this machine can take, then write the page.

    python -m benchmarks.measure

Some ten minutes on two cores, which should have nothing else to do. Each benchmark runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys

from benchmarks import page
from benchmarks.fresh import run_fresh
from hushrank.files import write_json
from hushrank.machine.bench import BENCHMARKS


def main() -> int:
    page.DATA.mkdir(exist_ok=True)
    reports = [run_fresh("hushrank", "bench", name, "--device", "cpu", "--json") for name in BENCHMARKS]
    write_json(
        page.DATA / "processor.json", {"benchmarks": [row for report in reports for row in report["benchmarks"]]}
    )
    for name in ("scale", "reader", "limits", "speed_ratio"):
        command = [sys.executable, "-m", f"benchmarks.{name}", "--json", str(page.DATA / f"{name}.json")]
        # Why unchecked: a broken promise about growth ends scale.py with 1, and belongs on the page all the same.
        subprocess.run(command, check=name != "scale", stdout=subprocess.DEVNULL)
    return page.main([])


if __name__ == "__main__":
    sys.exit(main())
