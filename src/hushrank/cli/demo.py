"""`hushrank demo`: the main job on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Directory of the demo's runs.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print the results as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Train centrally and federated on embedded data; a table, and an HTML report in runs/demo/report.html."""
    from hushrank.cli.output import print_json, print_runs
    from hushrank.cli.running import run_visibly
    from hushrank.reports.page import write_report
    from hushrank.reports.summary import from_directory
    from hushrank.runs.demo import demo_recipes, prepare_demo
    from hushrank.runs.environment import current_command
    from hushrank.runs.run import RunOptions

    prepare_demo(out, seed=seed)
    results = {}
    for name, recipe in demo_recipes(seed=seed).items():
        options = RunOptions(out=out / name, resume=True, command=current_command())
        results[name] = run_visibly(recipe, options, quiet=quiet, title=name).result
    directories = [out / name for name in results]
    write_report([from_directory(directory) for directory in directories], out / "report.html")
    if json_:
        print_json({"runs": results})
    else:
        print_runs(directories, report=out / "report.html", quiet=quiet)
        typer.echo("Next: hushrank run fpdgd --set server_rate=10 --set clicks=informational", err=True)
