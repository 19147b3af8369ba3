"""Where randomised tests begin: always the same, or with HUSHRANK_FRESH_SEEDS=1 at a new seed, which is printed."""

from __future__ import annotations

import os
import secrets

FRESH, CHOSEN = "HUSHRANK_FRESH_SEEDS", "HUSHRANK_SEED"


def find_run_seed() -> int | None:
    """Of the whole run: the one that was chosen, or a fresh one if that is wanted, or none."""
    if os.environ.get(FRESH) == "1" and CHOSEN not in os.environ:
        os.environ[CHOSEN] = str(secrets.randbits(31))  # Why: workers inherit it
    return int(os.environ[CHOSEN]) if CHOSEN in os.environ else None


def pick_seed(usual: int) -> int:
    """Of one test; pytest shows what is printed here when the test fails."""
    run_seed = find_run_seed()
    if run_seed is None:
        return usual
    print(f"repeat with {CHOSEN}={run_seed}")
    return run_seed + usual
