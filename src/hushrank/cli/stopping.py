"""Ctrl-C and a service manager's wish to stop: what is under way ends well, nothing is lost, and it is said."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from hushrank.live.device.transport import Stop


@contextmanager
def stopping() -> Iterator[Stop]:
    """While this lasts, signals set the `Stop`; afterwards the exit code is 0 for SIGTERM, 130 for Ctrl-C."""
    from hushrank.live.device.transport import Stop, StoppedError

    stop, heard = Stop(), list[int]()

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        heard.append(number)
        stop.set()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # Why: a shell's background job is to stay deaf to Ctrl-C
            signal.signal(number, handle)
    try:
        yield stop
    except StoppedError:
        print("stopped; nothing is lost, start it again to go on", file=sys.stderr)
        raise typer.Exit(130 if heard and heard[0] == signal.SIGINT else 0) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
