"""Many runs at once on stderr: a live table on a terminal, lines when piped, nothing with --quiet.

Lines come at the start, for each run that ends, and now and then while nothing ends.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from hushrank.runs.pool import Step

_LINE_SECONDS = 30.0  # without a line; Why: runs take minutes, and a log should show that they live
_SHOWN = 12  # rows; Why: a table that is longer than the terminal flickers


class PoolDisplay:
    """Hears a pool's steps; shows which runs are under way, how far, and their quality on validation queries."""

    def __init__(
        self, title: str, labels: Sequence[str], *, quiet: bool = False, line_seconds: float = _LINE_SECONDS
    ) -> None:
        self._title, self._labels, self._quiet = title, labels, quiet
        self._line_seconds, self._last_line, self._is_over = line_seconds, time.monotonic(), threading.Event()
        self._steps: dict[int, Step] = {}
        self._quality: dict[int, float] = {}
        self._measure = "nDCG@10"
        self._began, self._done_before = time.monotonic(), 0.0
        self._live: Live | None = None
        self._lines: threading.Thread | None = None

    def __enter__(self) -> PoolDisplay:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=4, get_renderable=self.render)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        if self._lines is not None:
            self._lines.join()
        if self._live is not None:
            self._live.stop()

    def _begin_lines(self) -> None:
        """Why at the first step and not before: what is refused before it is the only line."""
        from hushrank.reports.wording import count_text

        self._print(count_text(len(self._labels), "run"))
        self._lines = threading.Thread(target=self._tell_now_and_then, daemon=True)
        self._lines.start()

    def _tell_now_and_then(self) -> None:
        """A sign of life while no run ends."""
        while not self._is_over.wait(self._line_seconds / 10):
            if time.monotonic() - self._last_line >= self._line_seconds:
                self._print(self.summary())

    def _print(self, sentence: str) -> None:
        self._last_line = time.monotonic()
        print(f"{self._title}: {sentence}", file=sys.stderr, flush=True)

    def hear(self, step: Step) -> None:
        is_piped = self._live is None and not self._quiet
        if is_piped and not self._steps:
            self._begin_lines()
        is_news = step.number not in self._steps or not self._steps[step.number].is_over
        if step.is_over and step.number not in self._steps:
            self._done_before += 1  # it was finished before this pool began
        self._steps[step.number] = step
        if step.quality is not None:
            self._quality[step.number], self._measure = step.quality, step.measure
        if step.is_over and is_news and is_piped:
            self._print(f"{self.summary()}; {self.describe(step.number)}")

    def describe(self, number: int) -> str:
        step = self._steps[number]
        how = f"failed: {step.error}" if step.error else "finished"
        vali = f", vali {self._measure} {self.quality(number)}" if number in self._quality else ""
        return f"{self._labels[number]} {how}{vali}"

    def quality(self, number: int) -> str:
        from hushrank.look.numbers import format_value

        found = self._quality.get(number)
        return "nothing to measure" if found is not None and math.isnan(found) else format_value(found)

    def summary(self) -> str:
        """`12 of 60 finished, 1 failed, 2 running, 25% done, 3 min left`"""
        from hushrank.look.numbers import format_duration

        steps = list(self._steps.values())
        over, running = ([step for step in steps if step.is_over == is_over] for is_over in (True, False))
        failed = sum(step.error is not None for step in over)
        words = [f"{len(over) - failed} of {len(self._labels)} finished"]
        words += [f"{failed} failed"] if failed else []
        share = len(over) + sum(step.share for step in running)
        words += [f"{len(running)} running, {share / len(self._labels):.0%} done"] if running else []
        done = share - self._done_before
        left = len(self._labels) - self._done_before - done
        if done > 0.05 and left > 0:
            words.append(f"{format_duration((time.monotonic() - self._began) * left / done)} left")
        return ", ".join(words)

    def render(self) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", title_justify="left", title_style="")
        table.title = Text(f"{self._title}: {self.summary()}")
        for heading, justify in (
            ("run", "left"),
            ("state", "left"),
            ("done", "right"),
            (f"vali {self._measure}", "right"),
        ):
            table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type] # rich's literals
        for number in self.rows():
            step = self._steps[number]
            state = "failed" if step.error else "finished" if step.is_over else "running"
            table.add_row(Text(self._labels[number]), state, f"{step.share:.0%}", self.quality(number))
        return table

    def rows(self) -> list[int]:
        """Those under way, then those that ended last."""
        known = list(self._steps.items())
        running = [number for number, step in known if not step.is_over]
        over = [number for number, step in known if step.is_over]
        return [*running, *over[::-1]][:_SHOWN]
