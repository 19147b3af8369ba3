"""The command `hushrank`: each command is a file here, parses, calls one function and prints.

Nothing heavy is imported before a command runs: `hushrank --help` must answer at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from hushrank import __version__
from hushrank.cli import (
    bench,
    client,
    data,
    demo,
    doctor,
    evaluate,
    export,
    forget,
    privacy,
    report,
    reproduce,
    run,
    server,
    sweep,
)

app = typer.Typer(
    name="hushrank",
    help="Search that learns from everyone's clicks and sees no one's: federated online learning to rank.",
    rich_markup_mode=None,  # Why: rich help costs .3 s on every call
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("sweep")(sweep.sweep)
app.command("reproduce")(reproduce.reproduce)
app.command("evaluate")(evaluate.evaluate)
app.command("export")(export.export)
app.command("forget")(forget.forget)
app.command("report")(report.report)
app.add_typer(data.app, name="data")
app.add_typer(privacy.app, name="privacy")
app.add_typer(server.app, name="server")
app.add_typer(client.app, name="client")
app.command("bench")(bench.bench)
app.command("doctor")(doctor.doctor)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"hushrank {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    """Search that learns from everyone's clicks and sees no one's: federated online learning to rank."""
    del version
    if debug:
        os.environ["HUSHRANK_DEBUG"] = "1"


def main() -> None:
    """A user's mistake is one line on stderr and exit code 1; a traceback only with --debug."""
    try:
        app(prog_name="hushrank")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Why: the reader left; say nothing more
        sys.exit(141)
    except Exception as error:
        if os.environ.get("HUSHRANK_DEBUG"):
            raise
        print(f"hushrank: {describe_error(error)}", file=sys.stderr)
        sys.exit(1)


def describe_error(error: Exception) -> str:
    """One line. Errors that hushrank raises say what to do; others are named as what they are."""
    from hushrank.extras import explain_missing

    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno is not None and not error.filename:
        text = f"{text}. Nothing half-written was left; make room or permission and try again."
    if isinstance(error, ValueError | OSError):
        return text
    if missing := explain_missing(error):
        return missing
    return f"internal error, {type(error).__name__}: {text}. Report what hushrank --debug shows for the same command."
