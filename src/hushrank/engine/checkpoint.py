"""A task's progress on disk: one file, replaced whole. A run killed at any moment continues to the same bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from hushrank.files import write_bytes
from hushrank.types import NamedArrays


@dataclass(frozen=True, slots=True)
class Progress:
    """All that the rest of a task depends on, and all that it has recorded."""

    round: int  # rounds done
    state: NamedArrays  # what the next round begins with
    shown: NamedArrays = field(default_factory=dict)  # [round, ...] what each round showed
    looks: NamedArrays = field(
        default_factory=dict
    )  # [n_looks, ...] what examinations found; `LOOK`: after which round


LOOK = "round"
_PARTS = ("state", "shown", "looks")


def save_progress(path: Path, progress: Progress, *, identity: str, is_private: bool = False) -> None:
    """Replace the task's checkpoint; `identity` names the recipe and the data that it belongs to."""
    arrays = {
        f"{part}:{name}": np.asarray(array, order="C")
        for part in _PARTS
        for name, array in getattr(progress, part).items()
    }
    content = save(arrays, metadata={"identity": identity, "round": str(progress.round)})
    write_bytes(path, content, is_private=is_private)


def load_progress(path: Path, *, identity: str) -> Progress | None:
    """The task's last checkpoint, or None where there is none yet."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{path} is not a readable checkpoint ({error}). Remove it to redo this part of the run."
        ) from error
    if metadata.get("identity") != identity:
        raise ValueError(
            f"{path} belongs to another recipe, data, engine or device. Resume as it began or choose another --out."
        )
    if not any(name.startswith("state:") for name in arrays):
        raise ValueError(f"{path} is not a readable checkpoint (of an older version). Remove it to redo this part.")
    parts = {
        part: {name.removeprefix(f"{part}:"): array for name, array in arrays.items() if name.startswith(f"{part}:")}
        for part in _PARTS
    }
    return Progress(int(metadata["round"]), **parts)
