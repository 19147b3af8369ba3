"""`hushrank sweep`: a grid of experiments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hushrank.files import Json
    from hushrank.recipes.grid import Grid


def sweep(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="FILE.toml|RECIPE", help="A recipe file with [grid], or a recipe's name with --grid."),
    ] = None,
    grid: Annotated[
        list[str] | None, typer.Option("--grid", metavar="KEY=V1,V2", help="Vary one key; repeatable.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Synthetic set (tiny), public set (mq2008) or directory of LETOR files.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one key of all recipes; repeatable.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Same recipe, seed and device: same bits.")] = None,
    repeats: Annotated[int | None, typer.Option(help="Trainings per fold and user, with different draws.")] = None,
    select: Annotated[
        str | None,
        typer.Option(help="Choose on validation queries: vali (in each fold), pooled (over the folds) or none."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Runs at once; default one per processor. Does not affect results.")
    ] = None,
    on: Annotated[str, typer.Option(help="Where the runs are computed: local.")] = "local",
    device: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    engine: Annotated[str, typer.Option(help="numba (fused), xla (JAX), plain or auto; equal to rounding.")] = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Directory of the sweep; default runs/sweep-<recipe>-<time>.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the sweep in --out, or begin it.")] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE", help="Import a module (or a .py file) that adds own methods; repeatable."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the table as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Run a grid of experiments in parallel; choose on validation queries, report on test."""
    from hushrank.cli.pool_display import PoolDisplay
    from hushrank.recipes.grid import expand
    from hushrank.recipes.plugin import load_plugins
    from hushrank.recipes.values import parse_assignments
    from hushrank.runs.pool import PoolOptions
    from hushrank.runs.sweep import SweepOptions, default_directory, run_sweep

    if on != "local":
        raise ValueError(f"--on is {on!r}, must be local.")
    load_plugins(plugin or [])
    given = {"data": data, "seed": seed, "repeats": repeats}
    changes = parse_assignments(set_ or []) | {key: value for key, value in given.items() if value is not None}
    chosen = choose_grid(recipe, grid or [], changes, begun=out if resume else None)
    place = out or default_directory(chosen)
    display = PoolDisplay("sweep", [point.label for point in expand(chosen)], quiet=quiet)
    pool = PoolOptions(
        n_processes=jobs,
        plugins=tuple(plugin or ()),
        run={"device": device, "engine": engine, "workers": None if jobs == 1 else 1},
        hear=display.hear,
    )
    try:
        with display:
            place, table = run_sweep(chosen, SweepOptions(out=place, resume=resume, select=select, pool=pool))
    except KeyboardInterrupt:
        same = "".join(f" --plugin {name}" for name in plugin or [])
        print(
            f"stopped; what was done is saved. Continue with: hushrank sweep --resume --out {place}{same}",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    show_table(table, place, as_json=json_, quiet=quiet)


def choose_grid(recipe: str | None, axes: list[str], changes: Json, *, begun: Path | None) -> Grid:
    """The grid that was named, or that of a sweep to be continued."""
    from hushrank.recipes.grid import find_grid, parse_axes
    from hushrank.runs.sweep import read_grid_file

    if recipe is not None:
        return find_grid(recipe, axes=parse_axes(axes), changes=changes)
    known = read_grid_file(begun) if begun is not None else None
    if known is None or changes or axes:
        raise ValueError("which grid? Give a TOML file, or --resume alone with the --out of an unfinished sweep.")
    return known


def show_table(table: Json, place: Path, *, as_json: bool, quiet: bool) -> None:
    """Print what the runs found; exit code 1 where one failed."""
    from hushrank.cli.output import print_json, print_table
    from hushrank.reports.sweep import sweep_table, sweep_text

    if as_json:
        print_json(table)
    else:
        print_table(sweep_table(table), sweep_text(table))
        if not quiet:
            typer.echo(f"Report: {place / 'report.html'}", err=True)
    if table["n_failed"]:
        raise typer.Exit(1)
