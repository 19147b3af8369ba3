"""Methods by name: how a room takes in one more, of hushrank or of a user."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

Registered = TypeVar("Registered", bound=Callable[..., object])


def register(methods: dict[str, Registered], name: str, method: Registered, *, key: str) -> None:
    """Add a method under the name that the recipe key `key` gives it; a name that another method has is refused.

    Why the same function may come again: a notebook's cell is run more than once.
    """
    known = methods.get(name, method)
    if known is not method and (place_of(known) is None or place_of(known) != place_of(method)):
        raise ValueError(f"{key}={name} is taken ({place_of(known) or type(known).__name__}): choose another name.")
    methods[name] = method


def place_of(method: Callable[..., object]) -> str | None:
    """`module.name` of a function or class; None for other objects, which have no name of their own."""
    method = inspect.unwrap(method)
    name = getattr(method, "__qualname__", None)
    return f"{method.__module__}.{name}" if name else None
