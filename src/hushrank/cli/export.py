"""`hushrank export`: one ranker of a run as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a finished run.")],
    out: Annotated[
        Path | None, typer.Option(help="The safetensors file; default ranker.safetensors in the run.")
    ] = None,
    clicks: Annotated[str | None, typer.Option(help="The simulated user; default: the best on validation.")] = None,
    fold: Annotated[int | None, typer.Option(help="The fold; default: the best on validation.")] = None,
    repeat: Annotated[int | None, typer.Option(help="The repeat; default: the best on validation.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print what was exported as one JSON object.")] = False,
) -> None:
    """Write one trained ranker as safetensors, with JSON beside it."""
    from hushrank.cli.output import print_json
    from hushrank.runs.rankers import export_ranker

    place = out or run / "ranker.safetensors"
    origin = export_ranker(run, place, user=clicks, fold=fold, repeat=repeat)
    if json_:
        print_json({"file": str(place), **origin})
    else:
        typer.echo(
            f"{place}: the ranker of {origin['clicks']} users, fold {origin['fold']}, repeat {origin['repeat']} "
            f"(validation nDCG@10 {origin['vali/nDCG@10']:.4f})"
        )
        typer.echo(f"Use it: hushrank evaluate {place} --data DIR", err=True)
