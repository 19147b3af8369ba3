"""`hushrank run`: one experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hushrank.recipes.recipe import Recipe


def run(
    recipe: Annotated[
        str | None,
        typer.Argument(
            metavar="RECIPE|FILE.toml",
            help="fpdgd, foltr-es, pdgd, fedps, mse..., a TOML file, or a run's recipe.json.",
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Synthetic set (tiny), public set (mq2008) or directory of LETOR files.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one key of the recipe; repeatable.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Same recipe, seed and device: same bits.")] = None,
    repeats: Annotated[int | None, typer.Option(help="Trainings per fold and user, with different draws.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    devices: Annotated[int | None, typer.Option(help="Divide the clients among so many; default every GPU.")] = None,
    engine: Annotated[str, typer.Option(help="numba (fused), xla (JAX), plain or auto; equal to rounding.")] = "auto",
    out: Annotated[Path | None, typer.Option(help="Directory of the run; default runs/<recipe>-<time>-<hash>.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out, or begin it.")] = False,
    from_: Annotated[
        Path | None, typer.Option("--from", metavar="MODEL", help="Begin with an exported ranker.")
    ] = None,
    plugin: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE", help="Import a module (or a .py file) that adds own methods; repeatable."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Batches at once; default one per processor. Does not affect results.")
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            help="Such as 4GB; batches that do not fit together run one after another. Does not affect results."
        ),
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time between two checkpoints. Does not affect results.")
    ] = 10.0,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Run one experiment: simulated people search and click, a ranker learns."""
    from hushrank.cli.output import parse_bytes, print_json, print_runs
    from hushrank.cli.running import run_visibly
    from hushrank.recipes.files import find_recipe
    from hushrank.recipes.plugin import load_plugins
    from hushrank.recipes.recipe import change_recipe
    from hushrank.recipes.values import parse_assignments
    from hushrank.runs.environment import current_command
    from hushrank.runs.run import RunOptions

    load_plugins(plugin or [])
    chosen = find_recipe(recipe) if recipe is not None else _find_resumed(out if resume else None)
    given = {"data": data, "seed": seed, "repeats": repeats}
    changes = parse_assignments(set_ or []) | {key: value for key, value in given.items() if value is not None}
    chosen = change_recipe(chosen, changes)
    options = RunOptions(
        out=out,
        resume=resume,
        start=from_,
        device=device,
        devices=devices,
        engine=engine,
        workers=workers,
        memory_limit=parse_bytes(memory_limit),
        checkpoint_seconds=checkpoint_every,
        command=current_command(),
    )
    done = run_visibly(chosen, options, quiet=quiet)
    if json_:
        print_json(done.result)
    else:
        print_runs([done.directory], report=done.directory / "report.html", quiet=quiet)


def _find_resumed(out: Path | None) -> Recipe:
    """The recipe of an unfinished run."""
    from hushrank.runs.directory import read_recipe_file

    known = None if out is None else read_recipe_file(out)
    if known is None:
        raise ValueError(
            "which recipe? Give pdgd, fpdgd or a TOML file, or --resume with the --out of an unfinished run."
        )
    return known
