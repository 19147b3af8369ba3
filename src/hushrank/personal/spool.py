"""Real logs on disk: columns of all users end to end, written once, read by the user.

A population's directory holds `population.json`, written last, the titles and the vocabulary, and one flat file per
column. Only the asked user's rows are read into memory. The directory holds real people's queries: it is made readable
by its owner alone, and must never be published.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np

from hushrank.files import JsonObject, read_json, refuse_newer, write_json, write_text
from hushrank.personal.bm25 import Bm25Index, Candidates, make_index
from hushrank.personal.lists import complete_lists
from hushrank.personal.log import N_QUERY_WORDS, TEST, Collection, ListSizes, Periods, SearchLog, make_collection
from hushrank.types import Array

FORMAT = 1
_DESCRIPTION, _TITLES, _WORDS = "population.json", "titles.npy", "words.txt"
_COLUMNS: Mapping[str, str] = {
    "queries": "<i4",  # N_QUERY_WORDS for each search
    "times": "<i8",
    "sessions": "<i4",
    "list_ends": "<i8",  # of each search, counted over all users
    "documents": "<i4",  # of each list
    "is_clicked": "|u1",
    "user_ends": "<i8",  # searches up to and with each user
}


class PopulationWriter:
    """Takes in one user after the other; nothing of a user stays in memory, nor on disk where reading fails."""

    def __init__(self, directory: Path) -> None:
        if directory.exists() and any(directory.iterdir()):
            raise ValueError(f"{directory} is not empty. Name a new directory for the population.")
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        directory.chmod(0o700)
        self.directory = directory
        self._files: dict[str, IO[bytes]] = {name: (directory / f"{name}.bin").open("wb") for name in _COLUMNS}
        self._n_searches = self._n_documents = self.n_users = 0

    def add(self, log: SearchLog) -> None:
        """One user more."""
        self._n_searches += log.n_searches
        columns = {
            **{name: getattr(log, name) for name in ("queries", "times", "sessions", "documents", "is_clicked")},
            "list_ends": log.starts[1:] + self._n_documents,
            "user_ends": np.array([self._n_searches]),
        }
        for name, values in columns.items():
            self._files[name].write(np.ascontiguousarray(values, dtype=_COLUMNS[name]).tobytes())
        self._n_documents += len(log.documents)
        self.n_users += 1

    def __enter__(self) -> PopulationWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for name, file in self._files.items():
            file.close()
            if error is not None:
                (self.directory / f"{name}.bin").unlink()

    def finish(self, collection: Collection, periods: Periods, sizes: ListSizes, about: JsonObject) -> None:
        """Write what belongs to all users; `about` has at least a name and a description.

        sizes: to how many documents BM25 fills up the lists that were read.
        """
        for file in self._files.values():
            file.flush()
        np.save(self.directory / _TITLES, collection.titles)
        write_text(self.directory / _WORDS, "\n".join(collection.words[2:]))
        written = {
            "periods": dataclasses.asdict(periods),
            "sizes": dataclasses.asdict(sizes),
            "digest": digest_files(self.directory),
            **about,
        }
        write_json(self.directory / _DESCRIPTION, {"format": FORMAT, "n_users": self.n_users, **written})


def is_spooled(directory: Path) -> bool:
    """Whether a directory holds a population that was read to its end."""
    return (directory / _DESCRIPTION).is_file()


def digest_files(directory: Path) -> str:
    """Of everything that users searched, saw and clicked, and of the documents."""
    found = hashlib.sha256()
    for name in (*(f"{column}.bin" for column in _COLUMNS), _TITLES, _WORDS):
        with (directory / name).open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


class SpooledPopulation:
    """A population that was written to a directory; the general list of a search is BM25's."""

    is_generated = False
    n_query_words = N_QUERY_WORDS

    def __init__(self, directory: Path) -> None:
        path = directory / _DESCRIPTION
        if not path.is_file():
            raise ValueError(f"{directory} holds no finished population. Read the log again into a new directory.")
        self._about = read_json(path)
        refuse_newer(directory, self._about.get("format"), FORMAT)
        self.directory = directory
        self.periods = Periods(**self._about["periods"])
        self.list_sizes = ListSizes(**self._about["sizes"])

    @property
    def name(self) -> str:
        return str(self._about["name"])

    @cached_property
    def identity(self) -> str:
        digest = self._about.get("digest") or digest_files(self.directory)  # Why: earlier versions wrote none
        return f"{self.name}, {self.list_sizes}, {digest}"

    @property
    def description(self) -> str:
        return str(self._about["description"])

    @property
    def n_users(self) -> int:
        return int(self._about["n_users"])

    @property
    def n_searches(self) -> int:
        return len(self._column("times"))

    @property
    def span(self) -> tuple[int, int]:
        """Seconds of the first search and of the last."""
        times = self._column("times")
        return int(times.min()), int(times.max())

    @property
    def counts(self) -> JsonObject:
        """What became of the lines when the log was read, where that was kept."""
        return dict(self._about.get("counts", {}))

    def find_problems(self) -> list[str]:
        """What is not as it was written; every file is read."""
        names = (*(f"{column}.bin" for column in _COLUMNS), _TITLES, _WORDS)
        missing = [f"{self.directory / name} is missing." for name in names if not (self.directory / name).is_file()]
        if missing or "digest" not in self._about:
            return missing
        if digest_files(self.directory) != self._about["digest"]:
            return [f"{self.directory}: a file has changed since the log was read. Read the log again."]
        return []

    @cached_property
    def collection(self) -> Collection:
        words = (self.directory / _WORDS).read_text(encoding="utf-8")
        titles = np.load(self.directory / _TITLES, allow_pickle=False)
        return make_collection(titles, ("", "?", *(words.split("\n") if words else ())))

    @cached_property
    def index(self) -> Bm25Index:
        return make_index(self.collection)

    def log_of(self, user: int) -> SearchLog:
        """Lists are made here, so that the disk holds what the log held and no more."""
        if not 0 <= user < self.n_users:
            raise ValueError(f"user {user} is not in the population, users are 0 to {self.n_users - 1}.")
        ends = self._column("user_ends")
        first, stop = int(ends[user - 1]) if user else 0, int(ends[user])
        list_ends = self._column("list_ends")
        start = int(list_ends[first - 1]) if first else 0
        starts = np.concatenate([[0], list_ends[first:stop] - start])
        rows = slice(start, start + int(starts[-1]))
        queries = np.array(self._column("queries").reshape(-1, N_QUERY_WORDS)[first:stop])
        times = np.array(self._column("times")[first:stop])
        documents, is_clicked = np.array(self._column("documents")[rows]), self._column("is_clicked")[rows] > 0
        lists, clicked = self._complete(queries, times, Candidates(starts, documents, np.zeros(0)), is_clicked)
        sessions = np.array(self._column("sessions")[first:stop])
        return SearchLog(queries, times, sessions, lists.starts, lists.documents, clicked)

    def _complete(self, queries: Array, times: Array, given: Candidates, clicked: Array) -> tuple[Candidates, Array]:
        sizes = np.where(self.periods.of(times) == TEST, self.list_sizes.test, self.list_sizes.other)
        lists, _ = complete_lists(self.index, queries, given, sizes)
        n_documents = max(self.collection.n_documents, 1)
        owners = np.repeat(np.arange(len(queries)), np.diff(given.starts))
        own = np.repeat(np.arange(len(queries)), np.diff(lists.starts))
        return lists, np.isin(own * n_documents + lists.documents, (owners * n_documents + given.documents)[clicked])

    def _column(self, name: str) -> Array:
        path = self.directory / f"{name}.bin"
        kind = _COLUMNS[name]
        return np.memmap(path, dtype=kind, mode="r") if path.stat().st_size else np.zeros(0, dtype=kind)
