"""What a secure sum costs: time and bytes of one client in each phase, and of the server.

    python -m benchmarks.secure_sum --json docs/benchmarks/secure_sum.json

1,000 clients x 10,000 entries of which 100 fall silent after they have shared their secrets, the costliest moment, with
random neighbours and with the full graph; 100 clients with 10,000 entries and with a ranker's 46 weights; a million
entries. Each run is checked against the plain sum before its numbers count. Bytes are those of the fields (ids 8 each),
without what a codec or TLS adds. Time is processor time, without I/O.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from collections import defaultdict
from dataclasses import fields, is_dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from hushrank.files import write_json
from hushrank.privacy.secure_messages import SumConfig, SumPhase, name_session, usual_threshold
from hushrank.privacy.secure_server import SecureSum
from hushrank.privacy.secure_sum import run_secure_sum

ALWAYS, NEVER = 2, 2**32  # clients from which on there are neighbours
SIZES = (  # clients, entries, silent, neighbours from
    (100, 10_000, 20, NEVER),
    (100, 46, 20, NEVER),
    (10, 1_000_000, 2, NEVER),
    (1000, 10_000, 100, ALWAYS),
    (1000, 10_000, 100, NEVER),
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where the numbers go, besides stdout")
    parser.add_argument("--first", action="store_true", help="the first size only")
    options = parser.parse_args(arguments)
    rows = [measure(*size) for size in (SIZES[:1] if options.first else SIZES)]
    found = {"numpy": np.__version__, "secure_sum": rows}
    if options.json:
        write_json(options.json, found)
    json.dump(found, sys.stdout, indent=2)
    return 0


def measure(n_clients: int, n_entries: int, n_silent: int, neighbours_from: int) -> dict[str, Any]:
    """One run: its error against the plain sum, and medians over clients per phase."""
    generator = np.random.default_rng(0)
    values = {i: generator.uniform(-1, 1, n_entries) for i in range(n_clients)}
    config = SumConfig(
        name_session(secrets.token_bytes(32), 1, secrets.token_bytes(32)),
        n_clients,
        n_entries,
        1.0,
        usual_threshold(n_clients),
        least_honest=n_clients // 4,
        neighbours_from=neighbours_from,
    )
    silent = generator.choice(n_clients, n_silent, replace=False).tolist()
    watch = Watch()
    found = run_secure_sum(
        values,
        config,
        entropy={i: secrets.token_bytes(32) for i in values},
        lost=dict.fromkeys(silent, SumPhase.MASK),
        watch=watch,
    )
    error = float(np.abs(found.total - sum(values[i] for i in found.client_ids)).max())
    allowed = len(found.client_ids) / (2 * config.encoding.scale)
    if set(found.client_ids) != set(values) - set(silent) or error > allowed:
        raise ValueError(f"the sum is off by {error}, may be off by {allowed}.")
    return {
        "n_clients": n_clients,
        "n_entries": n_entries,
        "n_silent": n_silent,
        "threshold": config.threshold,
        "least_honest": config.honest_in_sum,
        "n_neighbours": config.sharing(n_clients).degree,
        "shares_needed": config.sharing(n_clients).threshold,
        "largest_error": error,
        "largest_error_allowed": allowed,
        **watch.report(),
    }


class Watch:
    """Takes the processor time since the last step and the size of each message."""

    def __init__(self) -> None:
        self.client: dict[SumPhase, list[tuple[float, int]]] = defaultdict(list)  # (seconds, bytes sent) of each client
        self.server: dict[SumPhase, float] = defaultdict(float)  # seconds
        self.received: dict[SumPhase, int] = {}  # bytes that one client receives when the phase closes
        self.before = time.process_time()

    def __call__(self, phase: SumPhase, message: Any) -> None:
        seconds = time.process_time() - self.before
        if message is not None and hasattr(message, "client_id"):
            self.client[phase].append((seconds, count_bytes(message)))
        else:
            self.server[phase] += seconds
            if message is not None and not isinstance(message, SecureSum):
                told = message.values() if isinstance(message, dict) else [message]
                self.received[phase] = int(median(map(count_bytes, told)))
        self.before = time.process_time()

    def report(self) -> dict[str, Any]:
        phases = {
            phase.name.lower(): {
                "client_ms": round(1e3 * median(s for s, _ in self.client[phase]), 2),
                "bytes_sent": int(median(b for _, b in self.client[phase])),
                "bytes_received": self.received.get(phase, 0),
                "server_ms": round(1e3 * self.server[phase], 1),
            }
            for phase in sorted(self.client)
        }
        total = {name: round(sum(p[name] for p in phases.values()), 2) for name in next(iter(phases.values()))}
        spent = sum(s for steps in self.client.values() for s, _ in steps) + sum(self.server.values())
        return {"phases": phases, "total": total, "cpu_s_all_clients_and_server": round(spent, 2)}


def count_bytes(value: Any) -> int:
    """Of the fields alone: 8 for an id, the length of bytes and arrays."""
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple):
        return sum(map(count_bytes, value))
    if is_dataclass(value):
        return sum(count_bytes(getattr(value, f.name)) for f in fields(value))
    return 8


if __name__ == "__main__":
    sys.exit(main())
