"""The keys of a recipe that choose its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hushrank.data.normalise import METHODS
from hushrank.keys import key


def check_folds(folds: Sequence[int]) -> str | None:
    is_right = min(folds) >= 1 and len(set(folds)) == len(folds)
    return None if is_right else "must be different numbers from 1 on"


@dataclass(frozen=True, kw_only=True)
class DataKeys:
    """What is searched."""

    data: str = key("mq2008-like", "synthetic set (tiny), public set (mq2008) or directory", alias="name")
    normalise: str | None = key(
        None, "none, query-minmax, standard; default: the catalogue's, none for a directory", choices=METHODS
    )
    folds: tuple[int, ...] | None = key(None, "default: every fold present", check=check_folds)
