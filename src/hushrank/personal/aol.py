"""The AOL search log of 2006: tab-separated AnonID, Query, QueryTime, ItemRank, ClickURL, a header in each file.

Files are read line by line, plain, gzip or xz; one user is in memory at a time. The lines of a user stand together in
the published files, and files that are otherwise are refused. The log names only clicked documents, so lists are made
by BM25 over the titles of a side file [fedps, Section 5.1]: 50 documents for a test search, 5 for any other, clicked
ones always among them. Background lasts until 3 April 2006, training until 16 May, and what is left of May is halved.

What is chosen here: lines with the same query and time are one search. Searches without a click on a titled document
are no part of the log, but they do count where sessions are divided. A user's lines out of the order of time are sorted
and counted. Times have no zone and are taken as UTC. A user with more searches than `most_searches` is no person. These
are real people's queries: no error, count or file name repeats any, and nothing of it may be published.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hushrank.personal.log import (
    BACKGROUND,
    N_QUERY_WORDS,
    TRAIN,
    ListSizes,
    Periods,
    Search,
    SearchLog,
    make_log,
    pad_words,
)
from hushrank.personal.sessions import LEAST_SIMILARITY, divide_sessions
from hushrank.personal.spool import PopulationWriter, SpooledPopulation
from hushrank.personal.titles import BadLines, TitledDocuments, check_files, read_text_lines, read_titles
from hushrank.types import Array

_HEADER = "AnonID"
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)", re.ASCII)
_EXPECTED = "AnonID, Query, QueryTime (2006-03-01 07:17:12), ItemRank and ClickURL, separated by tabs"


def _seconds(*moment: int) -> int:
    year, month, day, *clock = moment
    hour, minute, second = clock or (0, 0, 0)
    return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp())


PERIODS = Periods(train=_seconds(2006, 4, 3), validation=_seconds(2006, 5, 16), test=_seconds(2006, 5, 24))


@dataclass(frozen=True, slots=True)
class AolSettings:
    """Who is kept, and how long the lists are."""

    least_background: int = 5  # searches with a click; users with fewer are dropped
    least_train: int = 5
    most_searches: int = 10_000
    n_test_candidates: int = 50
    n_other_candidates: int = 5
    least_similarity: float = LEAST_SIMILARITY  # of consecutive queries of a session


class LogLine(NamedTuple):
    """One line; `url` is empty where nothing was clicked."""

    user: int
    query: str
    time: int  # seconds
    url: str


@dataclass(slots=True)
class AolCounts:
    """What became of the lines; counts and places, nothing that a line held."""

    bad_lines: BadLines = field(default_factory=lambda: BadLines(_EXPECTED))
    n_lines: int = 0
    n_users: int = 0  # kept
    n_users_dropped: int = 0  # with too few searches in the background or in training, or too many in all
    n_users_sorted: int = 0  # whose lines were out of the order of time
    n_searches: int = 0  # of the users that were kept, with a click on a titled document
    n_clicks_without_title: int = 0
    n_searches_without_words: int = 0  # with a click on a titled document, and a query of no letters or digits

    def as_json(self) -> dict[str, object]:
        counts = {key: value for key, value in dataclasses.asdict(self).items() if key != "bad_lines"}
        return {**counts, "n_bad_lines": self.bad_lines.n, "first_bad_line": self.bad_lines.first}


def import_aol(
    files: Sequence[Path],
    titles: Path,
    directory: Path,
    *,
    settings: AolSettings = AolSettings(),
    vectors: Array | None = None,
    hear: Callable[[int], None] = lambda _: None,
) -> tuple[SpooledPopulation, AolCounts]:
    """Read user-collection-01.txt, ... with `titles` (URL, tab, title) into a new directory.

    Without word vectors [n_words, d] the similarity of queries, at which sessions are divided, is that of their words.
    hear: hears after each user how many lines were read.
    """
    check_files(files, "the files of the log, such as user-collection-01.txt")
    check_files([titles], "the file of titles, one URL, tab and title in a line")
    documents, counts = read_titles(titles), AolCounts()
    with PopulationWriter(directory) as writer:
        for lines in read_users(files, counts):
            hear(counts.n_lines)
            log = make_user(lines, documents, settings, counts, vectors=vectors)
            if _has_enough(log, settings):
                writer.add(log)
                counts.n_users += 1
                counts.n_searches += log.n_searches
            else:
                counts.n_users_dropped += 1
        if not counts.n_users:
            raise ValueError(_explain(files, settings, counts))
        sizes = ListSizes(settings.n_test_candidates, settings.n_other_candidates)
        about = {"name": "aol", "description": f"{counts.n_users:,} users of the AOL log", "counts": counts.as_json()}
        writer.finish(documents.collection, PERIODS, sizes, about)
    return SpooledPopulation(directory), counts


def read_users(files: Sequence[Path], counts: AolCounts) -> Iterator[list[LogLine]]:
    """The lines of one user after the other, in the order of time."""
    seen: set[int] = set()
    for user, group in groupby(_read_lines(files, counts), key=lambda found: found[0].user):
        lines = []
        for line, path, number in group:
            if user in seen:
                raise ValueError(
                    f"{path}, line {number}: lines of this user stand apart from earlier ones. "
                    "Sort the files by AnonID, as the published ones are."
                )
            lines.append(line)
        seen.add(user)
        ordered = sorted(lines, key=lambda line: line.time)
        counts.n_users_sorted += ordered != lines
        yield ordered


def make_user(
    lines: Sequence[LogLine],
    documents: TitledDocuments,
    settings: AolSettings,
    counts: AolCounts,
    *,
    vectors: Array | None = None,
) -> SearchLog:
    """The clicked documents of one user as a log; lists come when it is read again."""
    searches = []
    for (time, query), group in groupby(lines, key=lambda line: (line.time, line.query)):
        urls = [line.url for line in group if line.url]
        rows = tuple(dict.fromkeys(documents.rows[url] for url in urls if url in documents.rows))
        counts.n_clicks_without_title += sum(url not in documents.rows for url in urls)
        searches.append(Search(time, tuple(documents.encode(query)), rows, rows))
    queries = pad_words([search.query for search in searches], N_QUERY_WORDS)
    times = np.array([search.time for search in searches], dtype=np.int64)
    sessions = divide_sessions(queries, times, least_similarity=settings.least_similarity, vectors=vectors)
    kept = [i for i, search in enumerate(searches) if search.documents and search.query]
    counts.n_searches_without_words += sum(bool(search.documents) and not search.query for search in searches)
    return make_log([searches[i] for i in kept], np.unique(sessions[kept], return_inverse=True)[1])


def _has_enough(log: SearchLog, settings: AolSettings) -> bool:
    counts = np.bincount(PERIODS.of(log.times), minlength=4)
    return bool(
        counts[BACKGROUND] >= settings.least_background
        and counts[TRAIN] >= settings.least_train
        and log.n_searches <= settings.most_searches
    )


def _read_lines(files: Sequence[Path], counts: AolCounts) -> Iterator[tuple[LogLine, Path, int]]:
    for path in files:
        for number, text in read_text_lines(path):
            if number == 1 and text.startswith(_HEADER):
                continue
            counts.n_lines += 1
            line = parse_line(text)
            if line is None:
                counts.bad_lines.add(path, number)
            else:
                yield line, path, number


def parse_line(text: str) -> LogLine | None:
    """A line of five columns, or of three where nothing was clicked; None: it is malformed."""
    columns = text.split("\t")
    if len(columns) not in (3, 5) or not is_number(columns[0]):
        return None
    time = parse_time(columns[2])
    rank, url = columns[3:] if len(columns) == 5 else ("", "")
    url = url.strip()
    if time is None or bool(rank) != bool(url) or (rank and not is_number(rank)):
        return None
    return LogLine(int(columns[0]), columns[1], time, url)


def is_number(text: str) -> bool:
    """Whether it is a whole number in plain digits that fits into 64 bits."""
    return text.isascii() and text.isdigit() and len(text) < 19


def parse_time(text: str) -> int | None:
    """Seconds of `2006-03-01 07:17:12`; None: it is written otherwise, or no calendar has it."""
    moment = _TIME.fullmatch(text)
    if moment is None:
        return None
    try:
        return _seconds(*map(int, moment.groups()))
    except ValueError:
        return None


def _explain(files: Sequence[Path], settings: AolSettings, counts: AolCounts) -> str:
    """Why no user is left."""
    if not counts.n_lines:
        return f"{', '.join(map(str, files))}: no line of a log. Each must hold {_EXPECTED}."
    bad = f" Malformed lines: {counts.bad_lines.n}; the first: {counts.bad_lines.first}" if counts.bad_lines.n else ""
    if counts.bad_lines.n == counts.n_lines:
        return f"no line of the log can be read.{bad}"
    return (
        f"no user is left of {counts.n_users_dropped}: at least {settings.least_background} background and "
        f"{settings.least_train} training searches with a click on a titled document are needed. Lower these, or check "
        f"that the titles are those of the log.{bad}"
    )
