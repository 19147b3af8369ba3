"""What the GPU's profile makes of a trace."""

from __future__ import annotations

from typing import Any

from benchmarks.gpu_profile import summarise

GPU, HOST, STREAM, OTHER_STREAM, LINE = 1, 2, 10, 11, 12


def name(what: str, pid: int, tid: int | None, called: str) -> dict[str, Any]:
    place = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
    return {"ph": "M", "name": what, **place, "args": {"name": called}}


def kernel(called: str, tid: int, begin: float, length: float, pid: int = GPU) -> dict[str, Any]:
    return {"ph": "X", "name": called, "pid": pid, "tid": tid, "ts": begin, "dur": length}


NAMES = [
    name("process_name", GPU, None, "/device:GPU:0"),
    name("process_name", HOST, None, "/host:CPU"),
    name("thread_name", GPU, STREAM, "Stream #13(Compute)"),
    name("thread_name", GPU, OTHER_STREAM, "Stream #14(MemcpyH2D)"),
    name("thread_name", GPU, LINE, "XLA Ops"),
]


def test_kernels_are_counted_per_round_and_time_that_streams_share_once() -> None:
    """Two rounds: learn takes 10 + 14, add 2 + 2; the second copy overlaps its learn for 3 of 5 microseconds."""
    events = [
        *NAMES,
        kernel("learn", STREAM, 0.0, 10.0),
        kernel("add", STREAM, 11.0, 2.0),
        kernel("learn", STREAM, 20.0, 14.0),
        kernel("copy", OTHER_STREAM, 31.0, 5.0),
        kernel("add", STREAM, 40.0, 2.0),
    ]
    found = summarise(events, 2)
    assert found["kernels_per_round"] == 2.5
    assert found["busy_microseconds_per_round"] == (10 + 2 + 14 + (5 - 3) + 2) / 2
    assert found["kernels"] == [
        {"name": "learn", "per_round": 1.0, "microseconds_per_round": 12.0},
        {"name": "copy", "per_round": 0.5, "microseconds_per_round": 2.5},
        {"name": "add", "per_round": 1.0, "microseconds_per_round": 2.0},
    ]


def test_what_the_host_does_and_what_other_lines_repeat_is_not_counted() -> None:
    events = [*NAMES, kernel("learn", LINE, 0.0, 10.0), kernel("wait", STREAM, 0.0, 9.0, pid=HOST)]
    assert summarise(events, 1)["kernels_per_round"] == 0
