"""How often a trained engine finds the query among its covers: a logistic model over what it sees of each text.

The engine knows the queries of some users, from whom it learns what distinguishes a query from its covers; then it
guesses those of others. By chance it would be right once in k + 1 sets. It knows no secret of anybody. What it sees of
a text:

- how well its topics fit those of all other sets of the same id (three ways to weigh this);
- the share of its words that one title holds, and how many titles hold as many;
- how many ids have sent it, and its words;
- how common its words are, and the share of its main topic.

Only the first line needs memory of the id. Shapes: n searches of one user, k covers each, F features.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from hushrank.leaks.covers import sum_other_sets
from hushrank.privacy.cover_topics import FIRST_WORD, CoverTopics, infer_mix
from hushrank.types import Array

N_MEMORY = 3  # features that need memory of the id
_STEPS, _RIDGE, _LEAST = 25, 1e-3, 1e-9


def guess_trained(
    topics: CoverTopics,
    titles: Array,
    queries: Sequence[Array],
    covers: Sequence[Array],
    *,
    n_known: int,
    remembers: bool = True,
) -> Array:
    """[n_users - n_known] how often the engine is right about each user whose queries it does not know.

    queries: [n, L] of each user; covers: [n, k, L]. remembers: whether it compares a text with other sets of the id.
    """
    seen = describe_texts(topics, titles, queries, covers)
    used = [each if remembers else each[..., N_MEMORY:] for each in seen]
    spread = np.concatenate([each.reshape(-1, each.shape[2]) for each in used[:n_known]]).std(axis=0) + _LEAST
    known = np.concatenate([(each[:, :1] - each[:, 1:]).reshape(-1, each.shape[2]) for each in used[:n_known]])
    weights = fit_logistic(known / spread)
    scores = [each / spread @ weights for each in used[n_known:]]
    is_best = [each >= each.max(axis=1, keepdims=True) - 1e-12 for each in scores]
    return np.array([float(np.mean(best[:, 0] / best.sum(axis=1))) for best in is_best])


def fit_logistic(differences: Array) -> Array:
    """[F] weights under which differences [m, F] of a query from a cover are above 0, by Newton's steps."""
    weights = np.zeros(differences.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(np.clip(differences @ weights, -30, 30)))  # of an error
        slope = differences.T @ chance / len(differences) - _RIDGE * weights
        bend = (differences * (chance * (1 - chance))[:, None]).T @ differences / len(differences)
        weights += np.linalg.solve(bend + _RIDGE * np.eye(len(weights)), slope)
    return weights


def describe_texts(
    topics: CoverTopics, titles: Array, queries: Sequence[Array], covers: Sequence[Array]
) -> list[Array]:
    """[n, k + 1, F] for each user; the query is the first of each set."""
    texts = [np.concatenate([each[:, None], those], axis=1) for each, those in zip(queries, covers, strict=True)]
    holders, by_text, by_word = (
        _list_holders(titles),
        defaultdict[bytes, set[int]](set),
        defaultdict[int, set[int]](set),
    )
    for user, each in enumerate(texts):
        for text in each.reshape(-1, each.shape[2]):
            by_text[_name(text)].add(user)
            for word in text[text > 0].tolist():
                by_word[word].add(user)
    shares = topics.shares @ topics.words
    found = []
    for own, each in zip(queries, texts, strict=True):
        flat = each.reshape(-1, each.shape[2])
        plain = [
            (
                *_measure_holding(text[text > 0], holders),
                np.log(len(by_text[_name(text)])),
                np.mean([np.log(len(by_word[word])) for word in text[text > 0].tolist()] or [0.0]),
                np.mean(np.log(shares[text[text > 0]] + _LEAST)) if text.any() else 0.0,
            )
            for text in flat
        ]
        fit = _measure_fit(topics, own, each)
        found.append(np.concatenate([fit, np.array(plain).reshape(*each.shape[:2], -1)], axis=2))
    return found


def _measure_fit(topics: CoverTopics, queries: Array, texts: Array) -> Array:
    """[n, k + 1, 4] of topics with those of other sets, and the share of the main topic last."""
    mixes = infer_mix(topics, texts.reshape(-1, texts.shape[2])).reshape(*texts.shape[:2], -1)
    others = sum_other_sets(mixes, queries)
    others = others / np.maximum(others.sum(axis=1, keepdims=True), _LEAST)
    fit = np.einsum("nkt,nt->nk", mixes, others)
    lift = np.einsum("nkt,nt->nk", mixes, others / topics.shares)
    return np.stack([fit, np.log(fit + _LEAST), np.log(lift + _LEAST), mixes.max(axis=2)], axis=2)


def _measure_holding(words: Array, holders: dict[int, Array]) -> tuple[float, float]:
    """The largest share of these words in one title, and the logarithm of how many titles have it."""
    titles = [holders[word] for word in words.tolist() if word in holders]
    if not titles:
        return 0.0, 0.0
    _, counts = np.unique(np.concatenate(titles), return_counts=True)
    most = counts.max()
    return float(most / len(words)), float(np.log1p(np.count_nonzero(counts == most)))


def _list_holders(titles: Array) -> dict[int, Array]:
    """{word: the titles that hold it}"""
    rows, places = np.nonzero(titles >= FIRST_WORD)
    pairs = np.unique(np.stack([titles[rows, places], rows], axis=1), axis=0)
    words, begins = np.unique(pairs[:, 0], return_index=True)
    return dict(zip(words.tolist(), np.split(pairs[:, 1], begins[1:]), strict=True))


def _name(text: Array) -> bytes:
    return np.sort(text[text > 0]).tobytes()
