"""`hushrank privacy`: epsilon, table."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from hushrank.cli.output import print_json

app = typer.Typer(
    help="What a setting guarantees, and what it really gives.", rich_markup_mode=None, no_args_is_help=True
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


class Mechanism(StrEnum):
    """How rewards are privatised."""

    responses = "randomised-response"
    laplace = "laplace"


@app.command()
def epsilon(
    mechanism: Annotated[Mechanism, typer.Option(help="How rewards are privatised.")] = Mechanism.responses,
    p: Annotated[float | None, typer.Option("--p", help="Probability of the truth; gives epsilon.")] = None,
    values: Annotated[int, typer.Option(help="Values that the reward can take; MaxRR@10 has 11.")] = 11,
    epsilon: Annotated[float | None, typer.Option(help="Wanted for one interaction; gives p, or the noise.")] = None,
    low: Annotated[float, typer.Option(help="Laplace: the lowest reward.")] = 0.0,
    high: Annotated[float, typer.Option(help="Laplace: the highest reward.")] = 1.0,
    interactions: Annotated[int, typer.Option(help="Per client and round.")] = 1,
    rounds: Annotated[int, typer.Option(help="In which a client takes part.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Show what a p guarantees or an epsilon needs.

    Interactions and rounds add up: the total is what one client spends.
    """
    from hushrank.privacy.laplace_reward import explain_noise
    from hushrank.privacy.randomised_response import explain_responses

    if mechanism is Mechanism.responses:
        found = explain_responses(p=p, epsilon=epsilon, n_values=values, n_interactions=interactions, rounds=rounds)
    elif p is not None:
        raise ValueError("p belongs to randomised-response; Laplace noise follows from epsilon and the range.")
    else:
        found = explain_noise(low=low, high=high, epsilon=epsilon, n_interactions=interactions, rounds=rounds)
    if as_json:
        print_json(found)
    else:
        _print_lines(found)


@app.command()
def table(
    name: Annotated[str, typer.Argument(help="A published table about privacy: foltr-es.table2.")],
    length: Annotated[int, typer.Option(help="Documents in a list; published for 5.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Compute a published table about privacy."""
    from hushrank.experiments.papers.foltr_es_table2 import NAME, make_table

    if name != NAME:
        raise ValueError(f"no table about privacy is called {name!r}; there is {NAME}.")
    found = make_table(length=length)
    if as_json:
        print_json(found)
    else:
        _print_epsilons(found)


def _print_lines(found: dict[str, Any]) -> None:
    for key, value in found.items():
        shown = "infinite" if value is None else f"{value:.6g}" if isinstance(value, float) else value
        typer.echo(f"{key.replace('_', ' ')}\t{shown}")


def _print_epsilons(found: dict[str, Any]) -> None:
    """One line per user, one column per p: ours, and the published value beside it."""
    title = f"epsilon of MaxRR, lists of {found['length']}: ours (published)"
    chances = list(dict.fromkeys(row["p"] for row in found["rows"]))
    lines: dict[str, list[str]] = {}
    for row in found["rows"]:
        published = "" if row["published"] is None else f" ({row['published']:.2f})"
        lines.setdefault(row["clicks"], []).append(f"{row['ours']:.2f}{published}")
    headings = ["user", *(f"p = {p:g}" for p in chances)]
    findings = [f"{'holds' if each['holds'] else 'fails'}: {each['claim']} {each['why']}" for each in found["findings"]]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        shown = Table(*headings, title=title, title_justify="left")
        for user, cells in lines.items():
            shown.add_row(user, *cells)
        Console().print(shown)
    else:
        rows = [headings, *([user, *cells] for user, cells in lines.items())]
        typer.echo("\n".join(["# " + title, *("\t".join(row) for row in rows)]))
    typer.echo("\n".join(findings))
