"""`hushrank reproduce`: the papers' tables and figures."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hushrank.files import Json
    from hushrank.reproduce.reproduce import Prepared, ReproduceOptions
    from hushrank.runs.pool import PoolOptions


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME...]", help="Such as fpdgd.figure4; with --quick and no name: all of them."),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="What there is, its data, its time; robust rules and attacks come on top.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A small honest version: fewer folds and rounds.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="A directory with the real data; without it data shaped like it.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one thing everywhere; repeatable.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="KEY=VALUE", help="Of a result run a part, such as ranker=linear; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed and device: same bits.")] = 0,
    repeats: Annotated[int | None, typer.Option(help="Trainings per fold and user; default five, quick two.")] = None,
    plugin: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE", help="Import a module (or a .py file) that adds own methods; repeatable."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Runs at once; default one per processor. Does not affect results.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    out: Annotated[Path, typer.Option(help="Where results are kept and continued.")] = Path("runs/reproduce"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin again instead of continuing.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Rerun a paper's table or figure: ours beside the published values, and whether its claims hold."""
    from hushrank.cli.output import print_json, print_table
    from hushrank.recipes.plugin import load_plugins
    from hushrank.recipes.values import parse_assignments
    from hushrank.reports.reproduction import reproduction_table, reproduction_text
    from hushrank.reproduce.named import names_to_run
    from hushrank.reproduce.reproduce import ReproduceOptions, prepare
    from hushrank.reproduce.reproduction import ReproductionSize
    from hushrank.runs.pool import PoolOptions

    if list_ or not (names or quick):
        show_list(as_json=json_)
        return
    load_plugins(plugin or [])
    scale = ReproductionSize(quick=quick, repeats=repeats, seed=seed)
    options = ReproduceOptions(
        out, data, scale, parse_assignments(set_ or []), fresh, parse_assignments(only or [], "--only")
    )
    prepared = [prepare(name, options) for name in names_to_run(names or [])]
    pool = PoolOptions(jobs, tuple(plugin or ()), run={"device": device, "workers": None if jobs == 1 else 1})
    results = []
    for each in prepared:
        results.append(reproduce_visibly(each, options, pool, quiet=quiet))
        if not json_:
            print_table(reproduction_table(results[-1]), reproduction_text(results[-1]))
    if json_:
        print_json(results[0] if len(results) == 1 else {"reproductions": results})
    if not quiet:
        typer.echo(f"Report: {prepared[-1].directory / 'report.html'}; all of them: {out / 'index.html'}", err=True)


def show_list(*, as_json: bool) -> None:
    """Print what can be rerun."""
    from hushrank.cli.output import print_json, print_table
    from hushrank.reports.listing import list_table, list_text
    from hushrank.reproduce.listing import list_results

    found = list_results()
    if as_json:
        print_json({"results": found})
    else:
        print_table(list_table(found), list_text(found))
        typer.echo("Rerun one with: hushrank reproduce NAME, or all in small with --quick", err=True)


def reproduce_visibly(each: Prepared, options: ReproduceOptions, pool: PoolOptions, *, quiet: bool) -> Json:
    """One result rerun, with progress and a Ctrl-C that loses nothing."""
    from hushrank.cli.pool_display import PoolDisplay
    from hushrank.reproduce.reproduce import reproduce

    display = PoolDisplay(each.result.name, each.labels, quiet=quiet)
    try:
        with display:
            return reproduce(each, options, replace(pool, hear=display.hear))
    except KeyboardInterrupt:
        print("stopped; what was done is saved. Continue with the same command.", file=sys.stderr)
        raise typer.Exit(130) from None
