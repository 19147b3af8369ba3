"""Does a step of the server's own help? Train with and without it, test the difference, write one report.

python examples/server_steps.py [DIRECTORY]
"""

from __future__ import annotations

import sys
from pathlib import Path

import hushrank
from hushrank.metrics.significance import paired_t_test

SAME = {"data": "tiny", "n_clients": 20, "interactions": 2, "rounds": 20, "repeats": 2, "seed": 7}


def main(directory: Path) -> None:
    """Begin, or continue what an earlier call began."""
    values, runs = {}, []
    for name, optimiser in {"fedavg": "sgd", "momentum": "momentum"}.items():
        run = hushrank.run("fpdgd", **SAME, server_optimiser=optimiser, out=directory / name, resume=True)
        values[name] = run.metrics.where(metric="offline/nDCG@10")["value"]  # fold by fold and repeat by repeat
        runs.append(run)
        print(f"{name:<9} nDCG@10 {values[name].mean():.3f} ± {values[name].std(ddof=1):.3f}")
    test = paired_t_test(values["momentum"], values["fedavg"])
    print(f"momentum minus fedavg {test.mean_difference:+.3f}, p = {test.p:.2g} over {test.n} pairs")
    print(hushrank.report(*runs, path=directory / "report.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/server-steps"))
