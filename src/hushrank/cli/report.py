"""`hushrank report`: runs compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Directories of finished runs; the first is what the others are compared with."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The HTML file; default report.html in the run, or beside several."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the runs' results as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the table.")] = False,
) -> None:
    """Compare finished runs: a table here, and one self-contained HTML page with curves."""
    from hushrank.cli.output import print_json, print_runs
    from hushrank.files import read_json
    from hushrank.reports.comparison import describe_comparison
    from hushrank.reports.page import default_page, write_report
    from hushrank.reports.summary import from_directory

    place = out or default_page(runs)
    summaries = [from_directory(run) for run in runs]
    write_report(summaries, place)
    if json_:
        results = [read_json(run / "result.json") for run in runs]
        print_json({"report": str(place), "runs": results, "comparison": describe_comparison(summaries)})
    else:
        print_runs(runs, report=place, quiet=quiet, is_new=False)
