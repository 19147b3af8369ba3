"""What is remembered from round to round, as one map of named arrays whose names begin with who remembers.

optimiser/...   what the server's optimiser remembers
rule/...        what an aggregation rule remembers
remedy/...      what the server remembers of a remedy for clients that differ, and tells everybody
noise/...       what a live server remembers of noise that later rounds take back; it must stay secret
personal/...    [n_clients, ...] what each client keeps for itself
kept/...        [n_clients, ...] what each client kept in an earlier training, which this one does not change
"""

from __future__ import annotations

from hushrank.types import Array, NamedArrays

OPTIMISER, RULE, REMEDY, NOISE, PERSONAL, KEPT = "optimiser", "rule", "remedy", "noise", "personal", "kept"
OWN_PARAMETERS = f"{PERSONAL}/parameters"  # [n_clients, n_personal] of rankers with personal parameters
LENGTHS = f"{PERSONAL}/lengths"  # [n_clients, n_kept] of each client's updates; NaN: it did not take part
SUMS = f"{PERSONAL}/sums"  # [n_clients, n_params] what each client has added to the ranker so far
KEPT_LENGTHS = f"{KEPT}/lengths"  # [n_clients, n_kept] that updates are scaled to


def part_of(state: NamedArrays, owner: str) -> dict[str, Array]:
    """What one owner remembers, by its own names."""
    return {name.removeprefix(f"{owner}/"): array for name, array in state.items() if name.startswith(f"{owner}/")}


def with_owner(owner: str, arrays: NamedArrays) -> dict[str, Array]:
    """The way back: the owner's arrays under the names of the whole."""
    return {f"{owner}/{name}": array for name, array in arrays.items()}


def replace_owner(state: NamedArrays, owner: str, arrays: NamedArrays) -> dict[str, Array]:
    """The state in which one owner remembers these arrays and nothing else."""
    others = {name: array for name, array in state.items() if not name.startswith(f"{owner}/")}
    return {**others, **with_owner(owner, arrays)}
