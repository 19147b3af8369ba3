"""A batch's progress on disk: one file, replaced whole. A run killed at any moment continues to the same bits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from hushrank.files import write_bytes
from hushrank.types import Array


@dataclass(frozen=True, slots=True)
class Progress:
    """All that the rest of a batch's run depends on, and all that it has recorded. C cells, p parameters."""

    round: int  # rounds done
    params: Array  # [C, p]
    server_first: Array  # [C, p] the server optimiser's memory
    server_second: Array  # [C, p]
    server_steps: Array  # [C, 1]
    online: Array  # [round, C] mean nDCG of the lists shown in each round
    searches: Array  # [round, C] how many lists that were
    evaluated: Array  # [n_evaluations] the rounds after which quality was measured
    test: Array  # [n_evaluations, C] nDCG
    vali: Array  # [n_evaluations, C]
    test_max_rr: Array  # [n_evaluations, C] expected MaxRR of the cell's person; NaN where it has no click table
    vali_max_rr: Array  # [n_evaluations, C]


_ARRAYS = tuple(name for name in Progress.__dataclass_fields__ if name != "round")


def save_progress(path: Path, progress: Progress, *, identity: str) -> None:
    """Replace the batch's checkpoint; `identity` names the recipe and the data that it belongs to."""
    arrays = {name: np.ascontiguousarray(getattr(progress, name)) for name in _ARRAYS}
    write_bytes(path, save(arrays, metadata={"identity": identity, "round": str(progress.round)}))


def load_progress(path: Path, *, identity: str) -> Progress | None:
    """The batch's last checkpoint, or None where there is none yet."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in _ARRAYS}
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{path} is not a readable checkpoint ({error}). Remove it to redo this part of the run."
        ) from error
    if metadata.get("identity") != identity:
        raise ValueError(
            f"{path} belongs to another recipe, data, engine or device. Resume as it began or choose another --out."
        )
    return Progress(round=int(metadata["round"]), **arrays)
