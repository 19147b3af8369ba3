"""A group whose command may be left out."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from hushrank.cli.default_command import DefaultGroup

app = typer.Typer(cls=DefaultGroup, rich_markup_mode=None)


@app.command()
def run(place: str = typer.Argument("here"), loud: bool = False) -> None:
    typer.echo(f"run {place} {loud}")


@app.command()
def stop() -> None:
    typer.echo("stop")


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ([], "run here False"),
        (["there"], "run there False"),
        (["--loud"], "run here True"),
        (["there", "--loud"], "run there True"),
        (["run", "there"], "run there False"),
        (["stop"], "stop"),
    ],
)
def test_words_that_name_no_command_are_the_defaults(words: list[str], printed: str) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and done.output == f"{printed}\n"


def test_help_is_of_the_group() -> None:
    done = CliRunner().invoke(app, ["--help"])
    assert done.exit_code == 0 and "stop" in done.output and "run" in done.output
