"""The way of a query: speed of cover queries, of re-ranking and of a relay; what covers hide; Table 2 of FedPS.

    python -m benchmarks.queries --json docs/benchmarks/queries.json
    python -m benchmarks.queries --json docs/benchmarks/queries.json --part relay_ms      that alone; the rest stays
    python -m benchmarks.queries --weights        fit the weights that every device begins with, and print them

Some minutes on one core. The relay is timed on loopback: its own time, and no network's. `--table` takes Table 2 from
the result.json of `hushrank reproduce fedps.table2` instead of computing it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np

from hushrank.files import write_json
from hushrank.leaks.cover_model import guess_trained
from hushrank.leaks.covers import guess_queries
from hushrank.live.queries.client import CoverMaker, QueryClient
from hushrank.live.queries.engine import TitleEngine
from hushrank.live.queries.relay import QueryRelay
from hushrank.live.queries.requests import serve
from hushrank.personal.features import FEATURES, FeatureSource, make_features, make_source
from hushrank.personal.log import TRAIN
from hushrank.personal.population import GeneratedPopulation, population_named
from hushrank.personal.queries.light import fit_light, make_pairs
from hushrank.personal.queries.local_log import FoundDocument, LoggedSearch, share_words
from hushrank.personal.queries.rerank import PersonalRanker
from hushrank.personal.vectors import train_vectors
from hushrank.privacy.cover_topics import CoverTopics, fit_topics
from hushrank.privacy.covers import CoverSettings, cover_query, draw_covers
from hushrank.reproduce.papers.fedps_table2 import compute_table
from hushrank.reproduce.reproduction import ReproductionSize, choose_data
from hushrank.streams import KeyedEntropy, seed_key, stream
from hushrank.types import Array

POPULATION = "personal-like:n_users=300,seed=101"  # Why this seed: no reported table uses it
N_QUERIES, N_TURNS = 300, 200
N_ROUNDS = 7  # of turns at the relay. Why: other programs run; the round with the fastest straight searches counts
N_GUESSED = 100  # users
HISTORY = (0, 100, 500)  # searches in a device's log
PARTS = ("covers", "rerank_ms", "relay_ms", "guessed", "table2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write the result")
    parser.add_argument("--part", choices=PARTS, help="measure this alone, and keep the rest of --json")
    parser.add_argument("--table", type=Path, help="a result.json of fedps.table2")
    parser.add_argument("--weights", action="store_true")
    arguments = parser.parse_args()
    population = population_named(POPULATION)
    source = make_source(population.collection, train_vectors(population.collection))
    if arguments.weights:
        found: dict[str, Any] = fit_weights(population, source)
    else:
        kept = json.loads(arguments.json.read_text(encoding="utf-8")) if arguments.part and arguments.json else {}
        parts = (arguments.part,) if arguments.part else PARTS
        found = {**kept, "population": POPULATION, **measure(population, source, arguments.table, parts)}
    if arguments.json:
        write_json(arguments.json, found)
    print(json.dumps(found, indent=1))


def measure(
    population: GeneratedPopulation, source: FeatureSource, table: Path | None, parts: Sequence[str]
) -> dict[str, Any]:
    collection = population.collection
    topics = fit_topics(collection.titles, collection.n_words, key=seed_key(1))
    made = CoverMaker(topics, collection.words, KeyedEntropy(secret=bytes(32)), CoverSettings(1, 0.0))  # type: ignore[arg-type] # a key
    logs = [population.log_of(user).queries for user in range(N_GUESSED)]
    measures: dict[str, Callable[[], Any]] = {
        "covers": lambda: time_covers(made, np.concatenate(logs)),
        "rerank_ms": lambda: [time_ranking(population, source, n) for n in HISTORY],
        "relay_ms": lambda: time_relay(source, np.concatenate(logs)),
        "guessed": lambda: [guess(topics, collection.titles, logs, n_covers) for n_covers in (1, 3)],
        "table2": lambda: read_table(table),
    }
    return {part: measures[part]() for part in parts}


def time_covers(made: CoverMaker, queries: Array) -> dict[str, float]:
    """On a device one query at a time; in the simulator a user's whole log."""
    some = queries[:N_QUERIES]
    began = time.perf_counter()
    for query in some:
        numbers = query[query > 0]
        text = " ".join(made.words[number] for number in numbers)
        sent, own = cover_query(text, numbers, made.made, made.words)
        assert sent.texts[own] == text and len(sent.texts) == 2
    one_by_one = time.perf_counter() - began
    began = time.perf_counter()
    draw_covers(made.topics, queries, key=seed_key(2))
    return {
        "one_by_one_per_s": round(len(some) / one_by_one, 1),
        "batched_per_s": round(len(queries) / (time.perf_counter() - began), 1),
    }


def time_ranking(population: GeneratedPopulation, source: FeatureSource, n_searches: int) -> dict[str, float]:
    """A list of 30 documents, with so many searches of 30 documents in the log."""
    log, titles, words = population.log_of(0), source.collection.titles, source.collection.words
    lists = [
        tuple(FoundDocument(f"d{d}", " ".join(words[w] for w in titles[d] if w)) for d in log.documents[log.rows(n)])
        for n in range(log.n_searches)
    ]
    texts = [" ".join(words[w] for w in query if w) for query in log.queries]
    past = [
        LoggedSearch(n, texts[n % len(texts)], listed, tuple(d.name for d in listed), (listed[0].name,))
        for n in range(n_searches)
        for listed in [lists[n % len(lists)]]
    ]
    ranker = PersonalRanker(share_words(source))
    seconds = take_turns([lambda: ranker.rank(past, texts[0], lists[0], time=10**6)], n_turns=20)[0]
    return {"searches_in_log": n_searches, "median": round(1e3 * median(seconds), 2)}


def time_relay(source: FeatureSource, queries: Array) -> dict[str, Any]:
    """The same queries straight to the engine and through a relay, in turns; both give the same lists.

    The relay has no say in which round counts; `added_medians` are those of all rounds.
    """
    texts = [" ".join(source.collection.words[w] for w in query if w) for query in queries[:N_TURNS]]
    with serve(TitleEngine(source.collection).app()) as url, serve(QueryRelay(url).app()) as relay_url:
        ways = [QueryClient(address, covers=None) for address in (url, relay_url)]
        assert all(ways[0].search(text) == ways[1].search(text) for text in texts[:20])
        rounds = [time_round(ways, texts) for _ in range(N_ROUNDS)]
    medians = [each["added_median"] for each in rounds]
    return {**min(rounds, key=lambda each: each["straight_median"]), "added_medians": medians}


def time_round(ways: Sequence[QueryClient], texts: Sequence[str]) -> dict[str, Any]:
    """Milliseconds straight, through the relay, and what it adds to each search."""
    turn = [iter(texts) for _ in ways]
    calls: list[Callable[[], object]] = [
        lambda: ways[0].search(next(turn[0])),
        lambda: ways[1].search(next(turn[1])),
    ]
    straight, relayed = ([1e3 * s for s in each] for each in take_turns(calls, n_turns=len(texts)))
    added = [b - a for a, b in zip(straight, relayed, strict=True)]
    return {
        "straight_median": round(median(straight), 2),
        "relayed_median": round(median(relayed), 2),
        "added_median": round(median(added), 2),
        "added_quartiles": [round(q, 2) for q in quantiles(added)[::2]],
    }


def take_turns(calls: Sequence[Callable[[], object]], *, n_turns: int) -> list[list[float]]:
    """Seconds of each call, alternating."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(n_turns):
        for call, own in zip(calls, seconds, strict=True):
            began = time.perf_counter()
            call()
            own.append(time.perf_counter() - began)
    return seconds


def guess(topics: CoverTopics, titles: Array, logs: Sequence[Array], n_covers: int) -> dict[str, float]:
    """How often an engine finds the query: one that remembers, and models that have learnt from half of the users."""
    keys = [stream(seed_key(5), user) for user in range(len(logs))]
    covers = [draw_covers(topics, own, key=key, n_covers=n_covers) for own, key in zip(logs, keys, strict=True)]
    fits = [guess_queries(topics, own, those).mean() for own, those in zip(logs, covers, strict=True)]
    trained, forgetful = (
        guess_trained(topics, titles, logs, covers, n_known=len(logs) // 2, remembers=remembers).mean()
        for remembers in (True, False)
    )
    rates = {"right": np.mean(fits), "trained": trained, "trained_without_memory": forgetful}
    found = {name: round(float(rate), 3) for name, rate in rates.items()}
    return {"n_covers": n_covers, "by_chance": round(1 / (n_covers + 1), 3), **found}


def read_table(path: Path | None) -> dict[str, Any]:
    """Rows and findings of Table 2."""
    if path is None:
        found = compute_table(choose_data(("aol", "commercial"), None), ReproductionSize())
    else:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["quick"]:
            raise ValueError(f"{path} is a quick version. Run hushrank reproduce fedps.table2.")
    keys = ("data", "method", "metric", "ours", "std", "n", "published")
    rows = [{**{key: row[key] for key in keys}, "why": row.get("why", "")} for row in found["rows"]]
    return {"rows": rows, "findings": found["findings"]}


def fit_weights(population: GeneratedPopulation, source: FeatureSource) -> dict[str, float]:
    """On the training period alone."""
    pairs = []
    for user in range(population.n_users):
        log = population.log_of(user)
        searches = np.flatnonzero(population.periods.of(log.times) == TRAIN)
        pairs.append(make_pairs(log, make_features(source, log), searches))
    return {name: round(float(weight), 3) for name, weight in zip(FEATURES, fit_light(pairs), strict=True)}


if __name__ == "__main__":
    main()
