"""The keys of a recipe that say who clicks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from hushrank.keys import above_zero, key

ClickTables: TypeAlias = Mapping[str, Mapping[str, Any]]
LOGGED = "log"  # the name of the people whose clicks come from a log


def check_tables(tables: Mapping[str, object]) -> str | None:
    is_right = all(isinstance(table, Mapping) for table in tables.values())
    return None if is_right else "must be a table {name: {click, stop or eta}} for each own user"


@dataclass(frozen=True, kw_only=True)
class ClickKeys:
    """Simulated people, or a log of real ones."""

    clicks: str | tuple[str, ...] = key("navigational", "a user's name, or several", alias="users")
    click_tables: ClickTables = key(  # noqa: RUF009 - each recipe gets a copy
        {}, "own users: {name: {click, stop}} or {name: {click, eta}}", check=check_tables, alias="tables"
    )
    log: str | None = key(None, 'a click log to learn from instead of simulated people; clicks is then "log"')
    max_weight: float | None = key(
        None, "with log: clip of the correction for outdated lists; default: no correction", check=above_zero
    )

    @property
    def users(self) -> tuple[str, ...]:
        return (self.clicks,) if isinstance(self.clicks, str) else self.clicks


def check_users(keys: ClickKeys) -> None:
    """Each user once, and those of a log only with a log."""
    if (keys.log is not None) != (keys.clicks == LOGGED):
        raise ValueError(f'log is {keys.log!r} and clicks {keys.clicks!r}: with a log, clicks is "log".')
    if keys.log is None and keys.max_weight is not None:
        raise ValueError("max_weight is for learning from a click log: give log too, or leave it out.")
    if len(set(keys.users)) < len(keys.users):
        raise ValueError(f"clicks is {list(keys.users)}: name each user once.")
