"""What leaks: how often an observer of one upload guesses the query and the clicked documents behind it.

The observer knows the ranker, the learning rate, the mechanism and the candidate lists of all queries: `observer.py`
and `reward_observer.py` say how it guesses. It is a measure, not a bound: a better attack may find more. Success is
counted over simulated clients that search, click and learn as in a run, and stands beside a chance level: the same
guesses held against what happened in the next round, or, where the query is told, the document with the highest score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hushrank.federation.evolution import Evolution
from hushrank.federation.local import follow_lessons
from hushrank.federation.round import Federation
from hushrank.files import Json
from hushrank.leaks.observer import (
    NO_NOISE,
    Guess,
    HasDelta,
    Noise,
    Observer,
    check_linear,
    guess,
    prepare_observer,
    try_mechanism,
)
from hushrank.leaks.reward_observer import choose_guess, guess_rewards, share_right
from hushrank.learners.es import directions
from hushrank.privacy.none import send_openly
from hushrank.rankers.policy import sample_ranking, sort_ranking
from hushrank.streams import Purpose, draw_below, draw_bits, draw_uniform, fold_in, stream
from hushrank.types import Array, DenseUpdate, QuerySet, SeedReward

Protect = Callable[..., HasDelta]  # (update, *, key) -> what leaves the device


@dataclass(frozen=True, slots=True)
class Truth:
    """What a client did in a round."""

    queries: tuple[int, ...]  # [n_interactions]
    clicked: frozenset[int]  # document rows
    has_learnt: bool  # whether any search gave a preference


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was guessed about a round, and what was true."""

    guess: Guess
    truths: tuple[Truth, ...]  # [n_summed]
    told_clicked: frozenset[int]  # document rows of the query that was told, the first client's first, which it clicked
    untold: Array  # document rows of that query to name without an upload: the one with the highest score


def reconstruct(
    update: HasDelta,
    queries: QuerySet,
    params: Array,
    *,
    learning_rate: float = 0.1,
    n_interactions: int = 1,
    noise: Noise = NO_NOISE,
    k: int = 10,
) -> Guess:
    """Which query was issued and which documents were clicked, from one upload of linear PDGD."""
    observer = prepare_observer(queries, params, learning_rate=learning_rate, n_interactions=n_interactions, k=k)
    return guess(observer, update.delta, noise)


@dataclass(frozen=True, slots=True)
class Watched:
    """Rounds of clients who are watched over their shoulders, and what an observer of their uploads knows."""

    federation: Federation
    params: Array  # [n_params] of the ranker that they were sent
    observer: Observer
    rounds: tuple[tuple[tuple[DenseUpdate, Truth], ...], ...]  # [n_trials][n_summed]
    n_interactions: int


def watch_rounds(
    federation: Federation,
    params: Array,
    *,
    n_interactions: int = 1,
    n_summed: int = 1,
    n_trials: int = 100,
    key: Array,
) -> Watched:
    """n_summed: clients of a round. n_trials: rounds, each of which begins with the same ranker."""
    _check_counts(n_trials=n_trials, n_interactions=n_interactions, n_summed=n_summed)
    queries = federation.queries
    check_linear(federation.ranker, queries.n_features)
    observer = prepare_observer(
        queries,
        params,
        learning_rate=federation.learning_rate,
        n_interactions=n_interactions * n_summed,
        k=federation.k,
        are_scaled=are_scaled(federation, params),
    )
    rounds = []
    for round in range(1, n_trials + 1):
        draws = draw_round(federation, n_summed, n_interactions, key=key, round=round)
        rounds.append(tuple(watch_client(federation, params, draws, client) for client in range(n_summed)))
    return Watched(federation, params, observer, tuple(rounds), n_interactions)


def leak_curve(watched: Watched, points: Iterable[tuple[str, float | None, Protect]], *, key: Array) -> list[Json]:
    """A row for each (label, epsilon, protect): `measure_watched` with the same clients and clicks."""
    return [
        {"label": label, "epsilon": epsilon, **measure_watched(watched, protect, key=key)}
        for label, epsilon, protect in points
    ]


def measure_leak(
    federation: Federation, params: Array, *, protect: Protect = send_openly, key: Array, **options: int
) -> Json:
    """The success of `reconstruct` against clients of this federation at these parameters; options: `watch_rounds`."""
    return measure_watched(watch_rounds(federation, params, key=key, **options), protect, key=key)


def measure_watched(watched: Watched, protect: Protect, *, key: Array) -> Json:
    """The success against these clients behind `protect`, any `privatise`.

    If a round has several, the observer sees the sum of their uploads and nothing else, as behind a secure sum; success
    is then that of a guess about one of them, picked at random.
    """
    params, n_summed = watched.params, len(watched.rounds[0])
    tried, n_interactions = stream(key, Purpose.ATTACK), watched.n_interactions
    noise = try_mechanism(protect, len(params), n_clients=n_summed, n_interactions=n_interactions, key=tried)
    attempts = []
    for round, done in enumerate(watched.rounds, start=1):
        upload, keys = np.zeros(len(params)), fold_in(stream(key, Purpose.PRIVATISE, round), np.arange(n_summed))
        for own, (update, _) in zip(keys, done, strict=True):
            upload += protect(update, key=own).delta
        truths = tuple(truth for _, truth in done)
        guessed = guess(watched.observer, upload, noise, told=truths[0].queries[0])
        attempts.append(_attempt(watched.federation, params, guessed, truths))
    n_queries = watched.federation.queries.n_queries
    about = {"interactions": n_interactions, "n_summed": n_summed, "n_queries": n_queries}
    return {"n_trials": len(attempts), **about, **count_success(attempts, n_interactions=n_interactions)}


@dataclass(frozen=True, slots=True)
class Draws:
    """The draws of all clients' interactions in a round: those of `local.learn` and of `es_learn`."""

    queries: Array  # [n_clients, n_interactions]
    show: Array  # [n_clients, n_interactions, longest list]
    click: Array  # [n_clients, n_interactions, k]
    stop: Array  # [n_clients, n_interactions, k]


def draw_round(federation: Federation, n_clients: int, n_interactions: int, *, key: Array, round: int) -> Draws:
    """Why together: alone, each takes as long as a thousand."""
    ids, places = np.arange(n_clients)[:, None], np.arange(n_interactions)
    keys = {
        purpose: fold_in(fold_in(stream(key, purpose, round), ids), places)
        for purpose in (Purpose.QUERY, Purpose.SHOW, Purpose.CLICK, Purpose.STOP)
    }
    return Draws(
        draw_below(keys[Purpose.QUERY], federation.queries.n_queries, 1)[..., 0],
        draw_uniform(keys[Purpose.SHOW], int(federation.queries.lengths.max())),
        draw_uniform(keys[Purpose.CLICK], federation.k),
        draw_uniform(keys[Purpose.STOP], federation.k),
    )


def are_scaled(federation: Federation, params: Array) -> bool:
    """Whether clients keep their weights within a norm."""
    far = np.full_like(params, 1e6)
    return not np.array_equal(federation.steps.keep(far), far)


def watch_client(federation: Federation, params: Array, draws: Draws, client: int) -> tuple[DenseUpdate, Truth]:
    """What a client learns, and what it did: `local.learn` for one who looks over its shoulder."""
    queries, clicked, pulls = draws.queries[client].tolist(), set[int](), list[Array]()

    def search(i: int, local: Array) -> tuple[Array, float]:
        rows = federation.queries.rows(queries[i])
        features, grades = federation.queries.features[rows], federation.queries.grades[rows]
        scores = federation.ranker.score(local, features)
        ranking = sample_ranking(scores, draws.show[client, i, : len(scores)], k=federation.k)
        is_clicked = _click(federation, grades[ranking], draws, client, i)
        clicked.update((rows.start + ranking[is_clicked]).tolist())
        pulls.append(federation.learner.gradient(federation.ranker, local, features, scores, ranking, is_clicked))
        return pulls[-1], 0.0

    local, _ = follow_lessons(params, [partial(search, i) for i in range(len(queries))], federation.steps)
    has_learnt = any(pull.any() for pull in pulls)
    return DenseUpdate(local - params, len(queries)), Truth(tuple(queries), frozenset(clicked), has_learnt)


def measure_reward_leak(
    federation: Federation,
    evolution: Evolution,
    params: Array,
    *,
    n_interactions: int = 2,
    knows_grades: bool = False,
    n_trials: int = 100,
    key: Array,
) -> Json:
    """The success of guesses from an evolution strategy's messages; knows_grades: the observer has relevance labels."""
    _check_counts(n_trials=n_trials, n_interactions=n_interactions)
    attempts, read, real = [], [], []
    for round in range(1, n_trials + 1):
        draws = draw_round(federation, 1, n_interactions, key=key, round=round)
        seed = int(draw_bits(stream(key, Purpose.SEED, round, 0), 1)[0])
        raw, truth = watch_es_client(federation, evolution, params, draws, 0, seed=seed)
        message = evolution.privatise(raw, key=stream(key, Purpose.PRIVATISE, round, 0))
        m = raw.rewards.shape[1]
        guesses = guess_rewards(federation, evolution, params, message, m=m, knows_grades=knows_grades)
        attempts.append(_attempt(federation, params, choose_guess(guesses, told=truth.queries[0]), (truth,)))
        read.append([found.rewards for found in guesses])
        real.append(raw.rewards.tolist())
    about = {"interactions": n_interactions, "p": evolution.p, "knows_grades": knows_grades}
    return {
        "n_trials": n_trials,
        **about,
        "n_queries": federation.queries.n_queries,
        "rewards_right": share_right(read, real),
        "rewards_right_chance": share_right(read, real[1:] + real[:1]),
        **count_success(attempts, n_interactions=n_interactions),
    }


def watch_es_client(
    federation: Federation, evolution: Evolution, params: Array, draws: Draws, client: int, *, seed: int
) -> tuple[SeedReward, Truth]:
    """What a client of an evolution strategy sees, and what it did: `es_learn` for one who looks over its shoulder."""
    signs = directions(draws.queries.shape[1], antithetic=evolution.antithetic)
    noise = evolution.perturb(federation.ranker, seed)
    clicked, rewards = set(), []
    for i, (sign, query) in enumerate(zip(signs, draws.queries[client].tolist(), strict=True)):
        rows = federation.queries.rows(query)
        grades = federation.queries.grades[rows]
        scores = federation.ranker.score(params + sign * noise, federation.queries.features[rows])
        ranking = sort_ranking(scores, k=evolution.k)
        is_clicked = _click(federation, grades[ranking], draws, client, i)
        rewards.append(evolution.finite(grades[ranking], is_clicked, grades))
        clicked |= set((rows.start + ranking[is_clicked]).tolist())
    truth = Truth(tuple(draws.queries[client].tolist()), frozenset(clicked), has_learnt=True)
    return SeedReward(seed, np.reshape(rewards, (2 if evolution.antithetic else 1, -1))), truth


def _click(federation: Federation, shown: Array, draws: Draws, client: int, interaction: int) -> Array:
    """[k] True where clicked, of the grades shown [k]."""
    place = (client, interaction, slice(len(shown)))
    return federation.user(shown, draws.click[place], draws.stop[place])


def _attempt(federation: Federation, params: Array, guessed: Guess, truths: tuple[Truth, ...]) -> Attempt:
    rows = federation.queries.rows(truths[0].queries[0])
    scores = federation.ranker.score(params, federation.queries.features[rows])
    told_clicked = truths[0].clicked & set(range(rows.start, rows.stop))
    return Attempt(guessed, truths, told_clicked, rows.start + sort_ranking(scores, k=1))


def count_success(attempts: Sequence[Attempt], *, n_interactions: int) -> dict[str, float]:
    """Shares of clients whose query was guessed, and precision, recall and F1 of the guessed documents over all.

    query_top1: the first guess is one of the client's queries. query_of_anyone: it is one of any client's in the sum.
    query_recall: the client's queries among as many first guesses as it had interactions. Where the query is told, the
    documents are the first client's of that query.
    """
    after = [*attempts[1:], attempts[0]]
    pairs = [(attempt.guess, truth) for attempt in attempts for truth in attempt.truths]
    shifted = [(a.guess, truth) for a, b in zip(attempts, after, strict=True) for truth in b.truths]
    learnt = [pair for pair in pairs if pair[1].has_learnt]
    found = _count_documents((guessed.clicked, truth.clicked) for guessed, truth in pairs)
    by_chance = _count_documents((guessed.clicked, truth.clicked) for guessed, truth in shifted)
    told = _count_documents((attempt.guess.told, attempt.told_clicked) for attempt in attempts)
    untold = _count_documents((attempt.untold, attempt.told_clicked) for attempt in attempts)
    return {
        "silent": 1.0 - len(learnt) / len(pairs),
        "query_top1": _share_named(pairs, 1),
        "query_top1_if_learnt": _share_named(learnt, 1),
        "query_top1_chance": _share_named(shifted, 1),
        "query_of_anyone": _share_of_anyone(zip(attempts, attempts, strict=True)),
        "query_of_anyone_chance": _share_of_anyone(zip(attempts, after, strict=True)),
        "query_recall": float(np.mean([_recall(g, truth, n_interactions) for g, truth in pairs])),
        **{f"clicked_{name}": value for name, value in found.items()},
        "clicked_f1_chance": by_chance["f1"],
        **{f"told_query_{name}": value for name, value in told.items()},
        "told_query_f1_chance": untold["f1"],
    }


def _share_named(pairs: Sequence[tuple[Guess, Truth]], n: int) -> float:
    """How often one of the first n guesses is right; 0 of no pairs."""
    right = [bool(set(guessed.queries[:n].tolist()) & set(truth.queries)) for guessed, truth in pairs]
    return float(np.mean(right)) if right else 0.0


def _share_of_anyone(pairs: Iterable[tuple[Attempt, Attempt]]) -> float:
    """How often the first guess of an attempt is a query of any client of the other one."""
    right = [bool(set(a.guess.queries[:1].tolist()) & {q for t in b.truths for q in t.queries}) for a, b in pairs]
    return float(np.mean(right))


def _recall(guessed: Guess, truth: Truth, n: int) -> float:
    real = set(truth.queries)
    return len(real & set(guessed.queries[:n].tolist())) / len(real)


def _count_documents(pairs: Iterable[tuple[Array, frozenset[int]]]) -> dict[str, float]:
    """Over all pairs of guessed and clicked documents together; 0 where nothing was guessed or clicked."""
    n_right = n_guessed = n_clicked = 0
    for guessed, clicked in pairs:
        n_right += len(clicked & set(guessed.tolist()))
        n_guessed += len(guessed)
        n_clicked += len(clicked)
    return {
        "precision": n_right / max(n_guessed, 1),
        "recall": n_right / max(n_clicked, 1),
        "f1": 2 * n_right / max(n_guessed + n_clicked, 1),
    }


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < (2 if name == "n_trials" else 1):
            raise ValueError(f"{name} is {count}, must be at least {2 if name == 'n_trials' else 1}.")
