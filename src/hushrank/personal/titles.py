"""Titles of real documents from a side file, one `document<TAB>title` per line, plain, gzip or xz.

The file is read twice: once for the vocabulary, once for the titles. Words are runs of letters and digits in lower
case; their numbers go by document frequency, the most frequent first, then by the alphabet. What an error or a count
says of a bad line is its number and what was expected.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushrank.data.source import read_chunks
from hushrank.personal.log import FIRST_WORD, N_TITLE_WORDS, PADDING, UNKNOWN, Collection, make_collection

_WORD = re.compile(r"[^\W_]+")


@dataclass(slots=True)
class BadLines:
    """How many lines of a file, or of several, could not be used, and where the first is."""

    expected: str  # what a line should hold
    n: int = 0
    first: str | None = None  # file, line and what was expected; never what stood there

    def add(self, path: Path, line: int) -> None:
        self.n += 1
        if self.first is None:
            self.first = f"{path}, line {line}: expected {self.expected}."


@dataclass(frozen=True, slots=True)
class TitledDocuments:
    """A collection with the names under which logs know its documents, and its vocabulary the other way round."""

    collection: Collection
    rows: Mapping[str, int]  # {document as the log names it: its row}
    numbers: Mapping[str, int]  # {word: its number}
    bad_lines: BadLines

    def encode(self, text: str) -> list[int]:
        """Word numbers; UNKNOWN for words that stand in no title."""
        return [self.numbers.get(word, UNKNOWN) for word in split_words(text)]


def split_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def read_titles(path: Path, *, least_frequency: int = 1) -> TitledDocuments:
    """All titles. Words of fewer than `least_frequency` titles are unknown. A document that comes again is an error."""
    frequency: Counter[str] = Counter()
    bad_lines = BadLines("a document, a tab and its title")
    rows: dict[str, int] = {}
    for number, document, title in _read_lines(path, bad_lines):
        if document in rows:
            raise ValueError(f"{path}, line {number}: this document came before. Keep one title for each document.")
        rows[document] = len(rows)
        frequency.update(set(split_words(title)))
    if not rows:
        raise ValueError(f"{path}: no titles. Each line must hold {bad_lines.expected}.")
    known = sorted((word for word, n in frequency.items() if n >= least_frequency), key=lambda w: (-frequency[w], w))
    numbers = {word: FIRST_WORD + place for place, word in enumerate(known)}
    titles = np.full((len(rows), N_TITLE_WORDS), PADDING, dtype=np.int32)
    for row, (_, _, title) in zip(titles, _read_lines(path, BadLines("")), strict=True):
        words = [numbers.get(word, UNKNOWN) for word in split_words(title)[:N_TITLE_WORDS]]
        row[: len(words)] = words
    return TitledDocuments(make_collection(titles, ("", "?", *known)), rows, numbers, bad_lines)


def check_files(paths: Sequence[Path], what: str) -> None:
    """Refuse files that are not there before anything is written."""
    if not paths:
        raise ValueError(f"no files came. Name {what}.")
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"{path} {'is no file' if path.exists() else 'does not exist'}. Name {what}.")


def read_text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and lines without their ends; blank ones are left out, bytes that are no UTF-8 replaced.

    A byte order mark, which some programs write before the first line, is no part of it.
    """
    number = 0
    for chunk in read_chunks(path):
        lines = chunk.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for line in lines:
            number += 1
            line = line.removeprefix(BOM_UTF8) if number == 1 else line
            if line.strip():
                yield number, line.decode("utf-8", "replace").rstrip("\r")


def _read_lines(path: Path, bad_lines: BadLines) -> Iterator[tuple[int, str, str]]:
    for number, line in read_text_lines(path):
        document, tab, title = line.partition("\t")
        if tab and document.strip():
            yield number, document.strip(), title
        else:
            bad_lines.add(path, number)
