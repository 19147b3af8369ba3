"""A small data set and a click log in which every query, document and person has a name that stands nowhere else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from secret_search import Secret, fraction_secret, row_secret, text_secret

WORDS = ("glaukom", "zyankali", "abfindung", "nachtkerze", "wölfe&söhne", "uveitis", "harzreise", "quittenbrot")
TERMS = ("befund", "kündigung", "verdacht")
FEATURES = (0.73105857, 0.26894143, 0.88079711, 0.11920293)  # of every query's documents, the third and the fourth
PROPENSITIES = (0.18242552, 0.62245931)
SHOWN = (7, 3, 11, 0, 9, 2, 5, 10, 1, 8)  # rows of the planted query, as shown
CLICKED = (True, False, False, True, True, False, True, True, False, True)  # which of them were clicked
N_DOCUMENTS, N_FEATURES = 12, 5


@dataclass(frozen=True, slots=True)
class Planted:
    """Where everything is, and what must not come out."""

    data: Path  # a directory of LETOR files
    log: Path
    secrets: tuple[Secret, ...]


def plant(place: Path) -> Planted:
    """Three splits with a query per pair of a term and a word, and a log in which two people search for all of them."""
    generator = np.random.default_rng(5)
    fold = place / "data" / "Fold1"
    fold.mkdir(parents=True)
    for split, words in (("train", WORDS[:4]), ("vali", WORDS[4:6]), ("test", WORDS[6:])):
        lines = [line for word in words for term in TERMS for line in describe_query(f"{term}-{word}", generator)]
        (fold / f"{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    log = place / "log.jsonl"
    impressions = [describe_impression(f"{term}-{word}") for word in WORDS[:4] for term in TERMS]
    log.write_text("\n".join(map(json.dumps, impressions)) + "\n", encoding="utf-8")
    texts = [*WORDS, *TERMS, *(f"{term}-{word}" for word in WORDS for term in TERMS), *map(name_person, range(2))]
    texts += [name_document(f"{TERMS[0]}-{WORDS[0]}", row) for row in range(N_DOCUMENTS)]
    numbers = [fraction_secret(*FEATURES[:2]), fraction_secret(*FEATURES[2:]), fraction_secret(*PROPENSITIES)]
    rows = [row_secret("the list shown", SHOWN), row_secret("the clicks", CLICKED)]
    return Planted(fold.parent, log, (*map(text_secret, texts), *numbers, *rows))


def describe_query(query: str, generator: np.random.Generator) -> list[str]:
    """LETOR lines; grades and the first feature go together, so that there is something to learn."""
    lines = []
    for row in range(N_DOCUMENTS):
        grade = int(generator.integers(0, 3))
        values = [0.3 * grade + 0.4 * generator.random(), *generator.random(N_FEATURES - 1)]
        values[2:4] = FEATURES[row % 4], FEATURES[(row + 1) % 4]
        pairs = " ".join(f"{index}:{value:.8f}" for index, value in enumerate(values, start=1))
        lines.append(f"{grade} qid:{query} {pairs} #docid = {name_document(query, row)} inc = 1")
    return lines


def describe_impression(query: str) -> dict[str, object]:
    """The same list and the same clicks for every query, documents by their names."""
    shown = [name_document(query, row) for row in SHOWN]
    clicked = [name for name, is_clicked in zip(shown, CLICKED, strict=True) if is_clicked]
    propensities = [PROPENSITIES[place % 2] for place in range(len(shown))]
    client = name_person(int(query.startswith(TERMS[0])))
    return {"client": client, "query": query, "shown": shown, "clicked": clicked, "propensities": propensities}


def name_document(query: str, row: int) -> str:
    return f"akte.{row:02}.{query}"


def name_person(number: int) -> str:
    return f"frau-grimaldi-{number}"
