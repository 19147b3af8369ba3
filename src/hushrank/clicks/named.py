"""The people of the literature by name, for two, three and five grades [thesis, Tables 2.1, 2.2, 5.1]."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial, update_wrapper

from hushrank.clicks.cascade import CascadeUser
from hushrank.clicks.position import PositionUser
from hushrank.registry import register
from hushrank.types import User

# {name: {number of grades: (P(click | grade), P(stop | click, grade))}}
_CASCADE: dict[str, dict[int, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "perfect": {
        2: ((0.0, 1.0), (0.0, 0.0)),
        3: ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
        5: ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
    },
    "navigational": {
        2: ((0.05, 0.95), (0.2, 0.9)),
        3: ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
        5: ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
    },
    "informational": {
        2: ((0.3, 0.7), (0.1, 0.5)),
        3: ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
        5: ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
    },
    "poison": {
        2: ((1.0, 0.0), (0.0, 0.0)),
        3: ((1.0, 0.5, 0.0), (0.0, 0.0, 0.0)),
        5: ((1.0, 0.8, 0.4, 0.2, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
    },
}
_POSITION_ETAS = {"pbm-0": 0.0, "pbm-0.5": 0.5, "pbm-1": 1.0, "pbm-1.5": 1.5, "pbm-2": 2.0}


def cascade_user(name: str, n_grades: int) -> CascadeUser:
    return CascadeUser(*_tables_for(name, n_grades))


def position_user(eta: float, n_grades: int) -> PositionUser:
    return PositionUser(_tables_for("perfect", n_grades)[0], eta=eta)


# {name: maker of the person for data with so many grades}; `register_user` adds to it
USERS: dict[str, Callable[[int], User]] = {
    **{name: partial(cascade_user, name) for name in _CASCADE},
    **{name: partial(position_user, eta) for name, eta in _POSITION_ETAS.items()},
}


def register_user(name: str, user: User) -> None:
    """Offer a person as `clicks=name`, whatever the number of grades in the data."""

    def make_user(n_grades: int) -> User:
        del n_grades
        return user

    update_wrapper(make_user, user)  # Why: the name and place of the person are those of its maker
    register(USERS, name, make_user, key="clicks")


def named_user(
    name: str, *, n_grades: int, own_tables: Mapping[str, Mapping[str, Sequence[float]]] | None = None
) -> User:
    """The person called `name` for data with grades 0 .. n_grades - 1; a recipe's own tables come first."""
    if own_tables and name in own_tables:
        user = own_user(name, own_tables[name])
        if len(user.click) < n_grades:
            raise ValueError(
                f"clicks={name} has a table of {len(user.click)} grades, the data's grades go up to {n_grades - 1}: "
                f"give {n_grades} probabilities."
            )
        return user
    if name in USERS:
        return USERS[name](n_grades)
    known = [*(own_tables or ()), *USERS]
    near = difflib.get_close_matches(name, known, n=1)
    raise ValueError(
        f"no click model is called {name!r}"
        + (f"; did you mean {near[0]!r}?" if near else f"; available: {', '.join(known)}. Load your own with --plugin.")
    )


def own_user(name: str, table: Mapping[str, Sequence[float]]) -> CascadeUser | PositionUser:
    """A person from a recipe's own table: `click` with `stop` (cascade) or with `eta` (position-based)."""
    if not set(table) <= {"click", "stop", "eta"} or "click" not in table or ("stop" in table) == ("eta" in table):
        raise ValueError(
            f"the click table {name!r} has {sorted(table)}; it needs click, and stop (cascade) or eta (by position)."
        )
    try:
        eta = float(table["eta"]) if "eta" in table else None  # type: ignore[arg-type] # Why: eta is one number
        click, stop = (tuple(float(p) for p in table.get(key, ())) for key in ("click", "stop"))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the click table {name!r}: click and stop are lists of numbers, eta is one ({error})."
        ) from error
    return CascadeUser(click, stop) if eta is None else PositionUser(click, eta=eta)


def _tables_for(name: str, n_grades: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The smallest published table that covers the data's grades."""
    for size, table in _CASCADE[name].items():
        if size >= n_grades:
            return table
    largest = max(_CASCADE[name])
    raise ValueError(
        f"the data's grades go up to {n_grades - 1}, but the published tables of clicks={name} end at {largest - 1}: "
        "give your own table under [click_tables] in the recipe."
    )
