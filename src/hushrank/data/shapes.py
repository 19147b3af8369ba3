"""Named shapes of generated data: how many queries, how long their lists, how many features and grades."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from hushrank.streams import seed_key

_OF_INTENTS = ("n_intents", "common")
Shape = TypeVar("Shape")


@dataclass(frozen=True, slots=True)
class SyntheticShape:
    """Everything that a generated set depends on, besides its seed."""

    n_queries: int
    shortest: int  # documents of the shortest list
    mean_length: float  # documents per query
    longest: int  # documents of the longest list
    skew: float  # of the list lengths: 0 = all alike; .3 = gathered around the mean, with a tail; .8 = most are short
    n_features: int
    grade_shares: tuple[float, ...]  # of all documents, from grade 0 upwards; together 1
    empty_share: float  # of the queries: those without a relevant document
    noise: float = 0.6  # standard deviation of what no feature tells, beside 1 for what features tell
    nonlinear_share: float = 0.3  # of what features tell: the variance that no linear ranker can find
    n_parts: int = 5  # S1, S2, ...; as many folds, each tested on one part, validated on one, trained on the rest
    n_intents: int = 0  # kinds of people who judge the same documents each in their own way; 0: all judge alike
    common: float = 0.5  # of what features tell: the variance that all kinds share

    def __post_init__(self) -> None:
        _check_shape(self)

    @property
    def n_grades(self) -> int:
        return len(self.grade_shares)

    @property
    def identity(self) -> dict[str, object]:
        """What generated data depends on. Why without intents where there are none: older sets keep their names."""
        fields = dataclasses.asdict(self)
        return fields if self.n_intents else {name: fields[name] for name in fields if name not in _OF_INTENTS}


def _check_shape(shape: SyntheticShape) -> None:
    lengths = f"shortest {shape.shortest}, mean_length {shape.mean_length}, longest {shape.longest}"
    claims = {
        f"n_queries is {shape.n_queries}, must be at least n_parts = {shape.n_parts}": shape.n_queries >= shape.n_parts,
        f"n_parts is {shape.n_parts}, must be at least 3 (train, vali, test)": shape.n_parts >= 3,
        f"{lengths}: must ascend from 1": 1 <= shape.shortest <= shape.mean_length <= shape.longest,
        f"skew is {shape.skew}, must be from 0 to 2": 0 <= shape.skew <= 2,
        f"n_features is {shape.n_features}, must be at least 4": shape.n_features >= 4,
        f"grade_shares are {shape.grade_shares}, must be 2 to 256 shares > 0 that add up to 1": (
            2 <= len(shape.grade_shares) <= 256
            and all(share > 0 for share in shape.grade_shares)
            and math.isclose(sum(shape.grade_shares), 1.0, abs_tol=1e-6)
        ),
        f"empty_share is {shape.empty_share}, must be from 0 to .99": 0 <= shape.empty_share <= 0.99,
        f"noise is {shape.noise}, must be from 0 to 100": 0 <= shape.noise <= 100,
        f"nonlinear_share is {shape.nonlinear_share}, must be from 0 to 1": 0 <= shape.nonlinear_share <= 1,
        f"n_intents is {shape.n_intents}, must be 0 (all judge alike) or from 2 to 256": (
            shape.n_intents == 0 or 2 <= shape.n_intents <= 256
        ),
        f"common is {shape.common}, must be from 0 to 1": 0 <= shape.common <= 1,
    }
    for claim, holds in claims.items():
        if not holds:
            raise ValueError(f"{claim}. Change the shape's parameters.")


# Why these numbers: mq2008-like has the lengths, grade shares and empty queries measured on MQ2008. Of the others,
# queries, documents and features follow the real sets; their grade shares, empty queries and longest lists are rough
# and were not measured. The noise is set so that a linear ranker reaches a plausible nDCG. Yahoo's and Istella's
# tenfold numbers of queries would take gigabytes; n_queries=29921 and 33018 ask for them.
SHAPES: Mapping[str, SyntheticShape] = MappingProxyType(
    {
        "tiny": SyntheticShape(60, 5, 10.0, 20, 0.3, 8, (0.6, 0.25, 0.15), 0.1),
        "mq2007-like": SyntheticShape(1692, 6, 69623 / 1692, 147, 0.4, 46, (0.742, 0.203, 0.055), 0.14, noise=0.7),
        "mq2008-like": SyntheticShape(784, 5, 15211 / 784, 121, 0.8, 46, (0.807, 0.132, 0.061), 0.28, noise=1.3),
        "mslr-like": SyntheticShape(10_000, 1, 120.0, 908, 0.28, 136, (0.52, 0.32, 0.134, 0.018, 0.008), 0.03),
        "yahoo-like": SyntheticShape(3_000, 1, 23.7, 139, 0.4, 700, (0.26, 0.36, 0.28, 0.08, 0.02), 0.02, noise=1.0),
        "istella-like": SyntheticShape(3_000, 3, 103.0, 182, 0.2, 220, (0.886, 0.02, 0.04, 0.033, 0.021), 0.0),
        "intent-change-like": SyntheticShape(200, 300, 500.0, 900, 0.3, 105, (0.96, 0.04), 0.0, n_intents=4),
    }
)


def split_seed(text: str) -> tuple[str, int | None]:
    """The name of a shape without the seed of its draws, and that seed: `mslr-like:seed=3,noise=0.2`."""
    name, _, changes = text.partition(":")
    others = [change for change in changes.split(",") if change and not change.startswith("seed=")]
    seeds = [change.removeprefix("seed=") for change in changes.split(",") if change.startswith("seed=")]
    if len(seeds) > 1:
        raise ValueError(f"{name} has {len(seeds)} seeds, {' and '.join(seeds)}: name one.")
    seed = int(_parse_value("seed", seeds[0], int)) if seeds else None  # type: ignore[arg-type]
    if seed is not None:
        seed_key(seed)  # refuses a number that is no seed
    return name + (":" + ",".join(others) if others else ""), seed


def shape_named(text: str) -> SyntheticShape:
    """A shape by name, with changed parameters where asked: `mslr-like` or `mslr-like:n_queries=500,noise=0.2`."""
    name, _, changes = split_seed(text)[0].partition(":")
    if name not in SHAPES:
        near = difflib.get_close_matches(name, SHAPES, n=3, cutoff=0.4)
        raise ValueError(f"no shape is called {name!r}. Did you mean {' or '.join(near or SHAPES)}?")
    return change_shape(SHAPES[name], [change for change in changes.split(",") if change])


def change_shape(shape: Shape, changes: list[str]) -> Shape:
    """The shape, a frozen dataclass of numbers, with each `key=value` applied.

    grade_shares are separated by slashes: grade_shares=.7/.2/.1.
    """
    kinds = {field.name: type(getattr(shape, field.name)) for field in dataclasses.fields(shape)}  # type: ignore[arg-type]
    values: dict[str, int | float | tuple[float, ...]] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or key not in kinds:
            near = difflib.get_close_matches(key, kinds, n=1, cutoff=0.0)[0]
            raise ValueError(f"{change!r} changes no parameter of a shape. Did you mean {near}=...?")
        values[key] = _parse_value(key, text, kinds[key])
    return dataclasses.replace(shape, **values)  # type: ignore[type-var]  # Why: each value has its field's type


def _parse_value(key: str, text: str, kind: type) -> int | float | tuple[float, ...]:
    try:
        if kind is tuple:
            return tuple(float(share) for share in text.split("/"))
        return int(text) if kind is int else float(text)
    except ValueError:
        what = {int: "a whole number", float: "a number", tuple: "numbers separated by slashes"}[kind]
        raise ValueError(f"{key} is {text!r}, must be {what}.") from None
