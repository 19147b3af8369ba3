"""`hushrank privacy`: epsilon, table, ledger, audit."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hushrank.files import Json

from hushrank.cli.audit import audit
from hushrank.cli.output import print_json

app = typer.Typer(
    help="What a setting guarantees, and what has been spent.", rich_markup_mode=None, no_args_is_help=True
)

app.command()(audit)
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


class Mechanism(StrEnum):
    """What is privatised, and how."""

    gaussian = "gaussian"
    laplace = "laplace"
    responses = "randomised-response"
    rewards = "laplace-reward"


class AdjacencyName(StrEnum):
    """Which two federations must look alike."""

    zero_out = "zero-out"
    replace_one = "replace-one"
    add_remove = "add-remove"


@app.command()
def epsilon(
    mechanism: Annotated[
        Mechanism, typer.Option(help="Noise on sums of updates (gaussian, laplace), or on each reward (the others).")
    ] = Mechanism.responses,
    epsilon: Annotated[
        float | None, typer.Option(help="Wanted: of the whole training; of one interaction for rewards.")
    ] = None,
    noise: Annotated[
        float | None, typer.Option(help="Updates: deviation or scale of the sum's noise / clip norm.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="In which a client takes part.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Probability without a promise; 1e-5 for gaussian, else none: pure epsilon.")
    ] = None,
    sampling: Annotated[float, typer.Option(help="Updates: probability that a client is in a round.")] = 1.0,
    scheme: Annotated[
        str, typer.Option(help="How clients are drawn: poisson, fixed (in number), rotation or everybody.")
    ] = "poisson",
    clients: Annotated[int | None, typer.Option(help="In the federation; delta must be below 1 / clients.")] = None,
    honest: Annotated[
        int | None, typer.Option(help="Updates: clients that share the noise among them; default: the server adds it.")
    ] = None,
    adjacency: Annotated[
        AdjacencyName,
        typer.Option(help="Updates: which two federations must look alike; add-remove costs double if fixed."),
    ] = AdjacencyName.zero_out,
    accountant: Annotated[str, typer.Option(help="Updates: pld (tight) or rdp (a bound).")] = "pld",
    p: Annotated[float | None, typer.Option("--p", help="Responses: probability of the truth.")] = None,
    total: Annotated[float | None, typer.Option(help="Responses: epsilon of all; gives p, or the rounds.")] = None,
    values: Annotated[int, typer.Option(help="Responses: values of a reward; MaxRR@10 has 11.")] = 11,
    low: Annotated[float, typer.Option(help="Laplace-reward: the lowest reward.")] = 0.0,
    high: Annotated[float, typer.Option(help="Laplace-reward: the highest reward.")] = 1.0,
    interactions: Annotated[int, typer.Option(help="Rewards: per client and round.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Show what a setting guarantees, or what a wanted epsilon needs.

    Updates: any two of --epsilon, --noise and --rounds give the third. Rewards: p or epsilon of one interaction gives
    the other; interactions and rounds add up to what one client spends.
    """
    if mechanism in (Mechanism.gaussian, Mechanism.laplace):
        if p is not None or total is not None:
            raise ValueError("p and total belong to randomised-response; noise on updates is given by --noise.")
        from hushrank.privacy.accounting import explain_training
        from hushrank.privacy.agreed import DELTA

        found = explain_training(
            mechanism,
            epsilon=epsilon,
            noise_multiplier=noise,
            rounds=rounds,
            delta=DELTA if delta is None and mechanism is Mechanism.gaussian else delta,
            n_clients=clients,
            n_honest=honest,
            accountant=accountant,
            sampling=sampling,
            scheme=scheme,
            adjacency=str(adjacency),
        )
    else:
        if noise is not None:
            raise ValueError("noise is for updates (gaussian, laplace); rewards are hidden by p or epsilon.")
        if mechanism is Mechanism.responses:
            found = _explain_responses(p, epsilon, total, values, interactions, rounds, delta)
        else:
            found = _explain_rewards(p, epsilon, low, high, interactions, rounds)
    if as_json:
        print_json(found)
    else:
        _print_lines(found)


def _explain_responses(
    p: float | None,
    epsilon: float | None,
    total: float | None,
    values: int,
    interactions: int,
    rounds: int | None,
    delta: float | None,
) -> Json:
    from hushrank.privacy.randomised_response import explain_responses

    if total is not None:
        from hushrank.privacy.accounting import find_responses

        if epsilon is not None:
            raise ValueError("give total, of all interactions, or epsilon, of one: not both.")
        p, rounds = find_responses(
            total=total, p=p, rounds=rounds, n_values=values, n_interactions=interactions, delta=delta
        )
    found = explain_responses(
        p=p, epsilon=epsilon, n_values=values, n_interactions=interactions, rounds=1 if rounds is None else rounds
    )
    if delta is None:
        return found
    from hushrank.privacy.accounting import explain_together

    return {**found, **explain_together(found, delta=delta)}


def _explain_rewards(
    p: float | None, epsilon: float | None, low: float, high: float, interactions: int, rounds: int | None
) -> Json:
    from hushrank.privacy.laplace_reward import explain_noise

    if p is not None:
        raise ValueError("p belongs to randomised-response; Laplace noise follows from epsilon and the range.")
    rounds = 1 if rounds is None else rounds
    return explain_noise(low=low, high=high, epsilon=epsilon, n_interactions=interactions, rounds=rounds)


@app.command()
def ledger(
    file: Annotated[Path | None, typer.Argument(help="A client's ledger; default that of this whole device.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Only say whether the chain of hashes is intact.")] = False,
    accepted: Annotated[
        int | None, typer.Option(help="Updates that the server accepted: a rolled-back file is noticed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a client has spent in a federation, or this whole device in all of them.

    Every line is verified first; a broken chain is an error that names its place.
    """
    from hushrank.privacy.device_ledger import describe_device, find_device, is_device, read_device
    from hushrank.privacy.ledger import compare_length, describe_ledger, read_ledger

    if file is None or is_device(file):
        if accepted is not None:
            raise ValueError("--accepted is for the ledger of one client: name its file.")
        found = describe_device(read_device(file or find_device()))
    else:
        read = read_ledger(file)
        if accepted is not None:
            compare_length(read, accepted)
        found = describe_ledger(read)
    if verify:
        found = {key: found[key] for key in ("chain", "entries", "head")}
    if as_json:
        print_json(found)
    else:
        _print_lines({key: value for key, value in found.items() if key != "rounds"})


@app.command()
def table(
    name: Annotated[str, typer.Argument(help="A published table about privacy: foltr-es.table2.")],
    length: Annotated[int, typer.Option(help="Documents in a list; published for 5.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Compute a published table about privacy."""
    from hushrank.reproduce.papers.foltr_es_table2 import NAME, make_table

    if name != NAME:
        raise ValueError(f"no table about privacy is called {name!r}; there is {NAME}.")
    found = make_table(length=length)
    if as_json:
        print_json(found)
    else:
        _print_epsilons(found)


def _print_lines(found: Json) -> None:
    for key, value in found.items():
        nothing = "none" if key == "delta" else "infinite"
        shown = nothing if value is None else f"{value:.6g}" if isinstance(value, float) else value
        typer.echo(f"{key.replace('_', ' ')}\t{shown}")


def _print_epsilons(found: Json) -> None:
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
