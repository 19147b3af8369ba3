"""What an operator may count, in the text format of Prometheus. Nothing in it is about one client."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

from hushrank.live.server.evidence import Evidence
from hushrank.live.server.lengths import RoundLengths
from hushrank.live.server.rounds import RoundState

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Histogram:
    """How often something took at most so many seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(_SECONDS) + 1)
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_SECONDS, seconds)] += 1
        self.total_s += seconds

    def lines(self, name: str) -> Iterator[str]:
        n = 0
        for count, bound in zip(self.counts, (*_SECONDS, "+Inf"), strict=True):
            n += count
            yield f'{name}_bucket{{le="{bound}"}} {n}'
        yield f"{name}_sum {self.total_s:.6f}"
        yield f"{name}_count {n}"


class Counters:
    """What has happened since the start."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # {(path as described, status): how often}
        self.refused: Counter[str] = Counter()  # {reason: how often}
        self.rounds: Counter[str] = Counter()  # {closed or abandoned: how often}
        self.dropped: Counter[str] = Counter()  # {limit: connections that were ended at it}
        self.lengths: RoundLengths | None = None  # of the updates of the newest round, where they may be told
        self.evidence = Evidence()  # what the aggregation rule said last
        self.n_accepted = 0
        self.commit_s = Histogram()
        self.round_s = Histogram()


def as_text(counters: Counters, now: Mapping[str, float], phase: RoundState) -> str:
    """now: {name: value} of what goes up and down."""
    lines = ["# TYPE hushrank_updates_accepted_total counter"]
    lines += [f"hushrank_updates_accepted_total {counters.n_accepted}", "# TYPE hushrank_refused_total counter"]
    lines += [f'hushrank_refused_total{{reason="{reason}"}} {n}' for reason, n in sorted(counters.refused.items())]
    lines += ["# TYPE hushrank_rounds_total counter"]
    lines += [f'hushrank_rounds_total{{outcome="{outcome}"}} {n}' for outcome, n in sorted(counters.rounds.items())]
    lines += ["# TYPE hushrank_requests_total counter"]
    lines += [
        f'hushrank_requests_total{{path="{path}",status="{status}"}} {n}'
        for (path, status), n in sorted(counters.requests.items())
    ]
    lines += ["# TYPE hushrank_connections_dropped_total counter"]
    lines += [
        f'hushrank_connections_dropped_total{{limit="{limit}"}} {n}' for limit, n in sorted(counters.dropped.items())
    ]
    lengths = {} if counters.lengths is None else counters.lengths._asdict()
    for name, value in {**now, **{f"update_{name}": value for name, value in lengths.items()}}.items():
        lines += [f"# TYPE hushrank_{name} gauge", f"hushrank_{name} {value:g}"]
    lines += ["# TYPE hushrank_clients_distrusted gauge"]
    lines += [f"hushrank_clients_distrusted {len(counters.evidence.distrusted)}", "# TYPE hushrank_evidence gauge"]
    lines += [f'hushrank_evidence{{name="{_quote(name)}"}} {v:g}' for name, v in counters.evidence.named.items()]
    lines += ["# TYPE hushrank_phase gauge"]
    lines += [f'hushrank_phase{{phase="{known}"}} {int(known is phase)}' for known in RoundState]
    for name, histogram in (("commit_seconds", counters.commit_s), ("round_seconds", counters.round_s)):
        lines += [f"# TYPE hushrank_{name} histogram", *histogram.lines(f"hushrank_{name}")]
    return "\n".join(lines) + "\n"


def _quote(label: str) -> str:
    """As the format wants it."""
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
