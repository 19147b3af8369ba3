"""Progress on stderr: a live bar on a terminal, a plain line now and then when piped, nothing with --quiet."""

from __future__ import annotations

import math
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

    from hushrank.engine.simulate import News
    from hushrank.types import Notice

LINE_SECONDS = 10.0  # Why: often enough to see that it lives, seldom enough for a log


class ProgressDisplay:
    """Hears the simulator's news from any thread; shows interactions per second, time left and the last quality."""

    def __init__(self, title: str, *, quiet: bool = False) -> None:
        self._title, self._quiet = title, quiet
        self._news: dict[int, News] = {}
        self._lock = threading.Lock()
        self._base: tuple[float, int, float] | None = None  # time, searches and share when the first batch moved
        self._last_line = time.monotonic()
        self._first: dict[int, tuple[int, float]] = {}
        self._bar: Progress | None = None

    def __enter__(self) -> ProgressDisplay:
        if not self._quiet and sys.stderr.isatty():
            self._bar = make_bar()
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=1.0, detail="compiling")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, sentence: str) -> None:
        """One short sentence about a step."""
        if self._bar is not None:
            self._bar.update(self._task, detail=sentence)
        elif not self._quiet:
            print(f"{self._title}: {sentence}", file=sys.stderr)

    def say(self, line: str) -> None:
        """A line that stays; none with --quiet."""
        if not self._quiet:
            self._print(line)

    def note(self, notice: Notice) -> None:
        """What was noticed; with --quiet only warnings."""
        if not self._quiet or notice.kind == "warning":
            self._print(notice.line)

    def _print(self, line: str) -> None:
        text = f"{self._title}: {line}"
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr)

    def report(self, news: News) -> None:
        with self._lock:
            if news.batch in self._news and news.share < self._news[news.batch].share:  # another training begins
                self._news, self._first, self._base = {}, {}, None
            self._news[news.batch] = news
            self._first.setdefault(news.batch, (news.searches, news.share))
            share = sum(n.share for n in self._news.values()) / news.n_batches
            detail = self._describe(news.n_batches, share)
            if self._bar is not None:
                self._bar.update(self._task, completed=share, detail=detail)
            elif not self._quiet and (time.monotonic() - self._last_line > LINE_SECONDS or share == 1):
                self._last_line = time.monotonic()
                print(f"{self._title}: {share:.0%}, {detail}", file=sys.stderr)

    def _describe(self, n_batches: int, share: float) -> str:
        """Rates count from the first batch's first step, so that compilation does not spoil them."""
        from hushrank.look.numbers import format_duration

        searches = sum(n.searches - self._first[n.batch][0] for n in self._news.values())
        gained = share - sum(first for _, first in self._first.values()) / n_batches
        known = list(self._news.values())
        mean = sum(n.test for n in known) / len(known)
        quality = f"{known[0].measure} {'nothing to measure' if math.isnan(mean) else f'{mean:.3f}'}"
        if self._base is None:
            self._base = (time.monotonic(), searches, gained) if gained > 0 else None
            return quality if gained > 0 else "compiling"
        elapsed = max(time.monotonic() - self._base[0], 1e-3)
        left = format_duration(elapsed * (1 - share) / max(gained - self._base[2], 1e-9))
        rate = f"{(searches - self._base[1]) / elapsed:,.0f} interactions/s"
        return ", ".join([rate, *([f"{left} left"] if share < 1 else []), quality])


def make_bar() -> Progress:
    """Columns of fixed width, so that nothing jumps while it updates."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.table import Column

    detail = TextColumn("{task.fields[detail]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1))
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=12), TaskProgressColumn(), detail)
    return Progress(*columns, console=Console(stderr=True), expand=True)
