"""`hushrank privacy audit`: a lower bound on epsilon that is measured, beside the one that is claimed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushrank.cli.progress import LINE_SECONDS, make_bar

if TYPE_CHECKING:
    from hushrank.files import Json


class EstimatorName(StrEnum):
    """How a bound is made."""

    runs = "runs"
    one_run = "one-run"


def audit(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE|FILE.toml", help="As of hushrank run: fpdgd, foltr-es...")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one key of the recipe; repeatable.")
    ] = None,
    relation: Annotated[
        str | None, typer.Option(help="zero-out, replace-one or add-remove; default what the recipe promises.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds of a run; default the recipe's, 1 for rewards and with --live.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="Of the claim; 0: pure epsilon; default the recipe's.")] = None,
    estimator: Annotated[
        EstimatorName, typer.Option(help="Many runs with and without a canary, or a canary in every client of one run.")
    ] = EstimatorName.runs,
    runs: Annotated[
        int | None, typer.Option(help="With the canary, and as many without; default what some twenty seconds allow.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Probability that the bound is not above the truth.")] = 0.999,
    params: Annotated[
        int, typer.Option(min=1, help="Numbers that a canary moves; the claim of paper grows with it.")
    ] = 2,
    live: Annotated[
        bool, typer.Option("--live", help="Audit a server and clients that are started on this machine; few runs.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of all draws, except live noise.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Directory for audit.json and a page with a chart.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Measure a lower bound on epsilon and print it beside the claim.

    Two federations that must look alike are run by the real code, and an attacker tells them apart as well as it can.
    Exit code 1: the bound is above the claim, which is then refuted.
    """
    from hushrank.audit.audit import AuditOptions
    from hushrank.audit.live_recipe import audit_live
    from hushrank.audit.recipe import Question, audit_recipe
    from hushrank.recipes.files import find_recipe
    from hushrank.recipes.recipe import change_recipe
    from hushrank.recipes.values import parse_assignments

    chosen = change_recipe(find_recipe(recipe), parse_assignments(set_ or []))
    question = Question(relation, rounds, delta, params)
    with show_progress("audit", quiet=quiet) as report:
        options = AuditOptions(str(estimator), runs, confidence, seed, report)
        found = (audit_live if live else audit_recipe)(chosen, question, options)
    print_audit(found, out, is_json=json_, quiet=quiet)
    if found["is_above_claim"]:
        raise typer.Exit(1)


def print_audit(found: Json, out: Path | None, *, is_json: bool, quiet: bool) -> None:
    """The result, and where its page is."""
    from hushrank.cli.output import print_json
    from hushrank.files import write_json
    from hushrank.reports.audit import describe_settings, summarise_audit, write_audit

    if is_json:
        print_json(found)
    else:
        lines = [*describe_settings(found), ("claimed", f"epsilon {found['claimed_epsilon']:.4g}")]
        lines.append(
            ("measured", f"epsilon at least {found['lower_bound']:.4g}, confidence {100 * found['confidence']:g} %")
        )
        if found["lower_bound_if_normal"] is not None:
            lines.append(
                ("if normal", f"at least {found['lower_bound_if_normal']:.4g}, provided that the noise is normal")
            )
        typer.echo("\n".join(f"{name}\t{value}" for name, value in lines))
        typer.echo(summarise_audit(found))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "audit.json", found)
        page = write_audit(found, out)
        if not quiet:
            typer.echo(f"Page: {page}", err=True)


@contextmanager
def show_progress(title: str, *, quiet: bool) -> Iterator[Callable[[float], None]]:
    """Gives a function that hears which share is done. Ctrl-C ends it with one line and exit code 130."""
    bar = make_bar() if not quiet and sys.stderr.isatty() else None
    last = time.monotonic()
    task = None if bar is None else bar.add_task(title, total=1.0, detail="")

    def report(share: float) -> None:
        nonlocal last
        if bar is not None and task is not None:
            bar.update(task, completed=share)
        elif not quiet and time.monotonic() - last > LINE_SECONDS:
            last = time.monotonic()
            print(f"{title}: {share:.0%}", file=sys.stderr)

    try:
        if bar is not None:
            bar.start()
        yield report
    except KeyboardInterrupt:
        print("stopped; an audit keeps nothing, start it again", file=sys.stderr)
        raise typer.Exit(130) from None
    finally:
        if bar is not None:
            bar.stop()
