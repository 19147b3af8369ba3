"""A whole data set as a directory of LETOR text: complete, or not there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hushrank.data.layout import ROLES
from hushrank.data.letor_write import write_letor
from hushrank.types import Dataset


def check_destination(destination: Path) -> None:
    """Refuse a place where something already is."""
    if destination.exists() and not (destination.is_dir() and not any(destination.iterdir())):
        raise FileExistsError(f"{destination} exists already and is not empty. Name another place, or remove it first.")


def write_dataset(dataset: Dataset, destination: Path, *, progress: Callable[[str], None] | None = None) -> None:
    """Write `FoldN/{train,vali,test}.txt`, first beside the destination, then renamed into it."""
    check_destination(destination)
    destination.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=f".{destination.name}-", dir=destination.parent))
    try:
        for fold in dataset.folds:
            place = making / f"Fold{fold.number}"
            place.mkdir()
            for role in ROLES:
                if progress is not None:
                    progress(f"writing {destination.name}/{place.name}/{role}.txt")
                write_letor(getattr(fold, role), place / f"{role}.txt")
        making.chmod(0o755)
        making.replace(destination)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise
