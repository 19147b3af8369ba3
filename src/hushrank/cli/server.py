"""`hushrank server`: run, init, token, status, clients, forget, recover, export."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushrank.cli.default_command import DefaultGroup
from hushrank.cli.output import print_json

if TYPE_CHECKING:
    from hushrank.files import Json
    from hushrank.live.server.config import ServerConfig
    from hushrank.live.server.coordinator import Coordinator
    from hushrank.live.wire.agreement import Agreement

app = typer.Typer(
    cls=DefaultGroup,
    help="Run a federation; without a command: run.",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
HOME = Path("hushrank-server")
_USUAL_MIN_CLIENTS = 5  # what init suggests, unless there are fewer than twice as many tokens
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The federation's directory, as init made it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


class MethodName(StrEnum):
    """How clients learn."""

    fpdgd = "fpdgd"
    foltr_es = "foltr-es"


@app.command()
def run(
    directory: Directory = HOME,
    host: Annotated[str | None, typer.Option(help="Address to listen on; default that of server.toml.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0: any free one; default that of server.toml.")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy on this machine adds TLS; trust its headers.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object per event on stderr.")] = False,
) -> None:
    """Serve a federation until Ctrl-C or SIGTERM; killed at any moment, it resumes."""
    from hushrank.live.server.config import read_config
    from hushrank.live.server.events import tell_people, tell_programs
    from hushrank.live.server.process import serve

    options: Json = {"host": host, "port": port, "behind_proxy": behind_proxy}
    if json_ or read_config(directory).log_json:
        serve(directory, tell=tell_programs(sys.stderr), **options)
    elif not sys.stderr.isatty():
        serve(directory, tell=tell_people(lambda line: print(line, file=sys.stderr, flush=True)), **options)
    else:
        _serve_with_live_line(directory, options)


def _serve_with_live_line(directory: Path, options: Json) -> None:
    """The round that is open on the last line, the ones that are over above it."""
    from rich.console import Console
    from rich.live import Live

    from hushrank.live.server.events import tell_people
    from hushrank.live.server.process import serve

    console = Console(stderr=True, highlight=False)
    watched: list[Coordinator] = []

    def line() -> str:
        return watched[0].describe_now() if watched else ""

    with Live(console=console, get_renderable=line, refresh_per_second=4, transient=True):
        serve(directory, tell=tell_people(console.print), watch=watched.append, **options)


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory for the federation.")] = HOME,
    method: Annotated[MethodName, typer.Option(help="How clients learn.")] = MethodName.fpdgd,
    features: Annotated[int, typer.Option(min=1, help="Numbers per query-document pair.")] = 46,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Of the agreement, as in a recipe (privacy=sound, epsilon=8), or of server.toml (min_clients=20).",
        ),
    ] = None,
    min_clients: Annotated[
        int | None, typer.Option(min=1, help="Rounds open when so many clients are awake; asked for in a terminal.")
    ] = None,
    tokens: Annotated[int, typer.Option(min=1, help="One-time tokens in tokens.txt: one for each client.")] = 100,
    name: Annotated[str | None, typer.Option(help="Federation name (default: directory name).")] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Allow a seed; nothing is private then.")] = False,
    seed: Annotated[int | None, typer.Option(help="With --simulate: the simulator's numbers come out.")] = None,
    tls: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="Make a certificate for this name or address, and listen for others."),
    ] = None,
    json_: AsJson = False,
) -> None:
    """Create a federation: write its configuration, keys, first tokens and store."""
    from hushrank.live.server.config import KEYS, make_config
    from hushrank.live.server.creation import bound_influence, choose_host, create_federation
    from hushrank.live.wire.agreement import make_agreement
    from hushrank.recipes.values import parse_assignments

    if simulate != (seed is not None):
        raise ValueError("--seed and --simulate belong together: a federation of people has no seed.")
    chosen = parse_assignments(set_ or [])
    if min_clients is not None and chosen.setdefault("min_clients", min_clients) != min_clients:
        raise ValueError("min_clients is given twice: with --min-clients and with --set.")
    if tls and "host" not in chosen:
        chosen["host"] = choose_host(tls)
    config = make_config({key: value for key, value in chosen.items() if key in KEYS}, none_unsets=True)
    agreed = {key: value for key, value in chosen.items() if key not in KEYS}
    for key, option in {"name": "--name", "n_features": "--features", "method": "--method", "seed": "--seed"}.items():
        if key in agreed:
            raise ValueError(f"{key} is not given with --set: use {option}.")
    called = name or directory.resolve().name
    agreement = make_agreement(called, n_features=features, method=method.value, seed=seed, **agreed)
    agreement = agreement if "update_norm" in agreed else bound_influence(agreement)
    if "min_clients" not in chosen:
        config = _ask_min_clients(directory, agreement, config, n_tokens=tokens, may_ask=not json_)
    create_federation(directory, agreement, config, n_tokens=tokens, tls_hosts=tls or [])
    _print_created(directory, agreement, n_tokens=tokens, as_json=json_)


def _print_created(directory: Path, agreement: Agreement, *, n_tokens: int, as_json: bool) -> None:
    from hushrank.live.server.config import read_config
    from hushrank.live.server.creation import describe_listening, describe_rule
    from hushrank.live.wire.terms import guarantee_of

    config = read_config(directory)
    listening, guarantee = describe_listening(config), guarantee_of(agreement)
    if (advice := describe_rule(agreement, config)) is not None:
        typer.echo(advice, err=True)
    if as_json:
        said = {"directory": str(directory), "digest": agreement.digest, "guarantee": guarantee}
        print_json({**said, "listens": listening})
        return
    tokens = f"{n_tokens} tokens in {directory}/tokens.txt"
    typer.echo(f"{directory}: federation {agreement.name!r}, {agreement.method}, {tokens}")
    typer.echo(f"privacy: {guarantee}")
    typer.echo(f"It will listen on {listening} (host and port in {directory}/server.toml)", err=True)
    typer.echo(f"Run it: hushrank server {directory}", err=True)


def _ask_min_clients(
    directory: Path, agreement: Agreement, config: ServerConfig, *, n_tokens: int, may_ask: bool
) -> ServerConfig:
    """From whoever sits at the terminal; elsewhere it is said that one client is enough, where that is so."""
    from dataclasses import replace

    from hushrank.live.server.config import rules_of

    if rules_of(agreement, config).fewest > 1 or directory.exists():
        return config
    if may_ask and sys.stdin.isatty() and sys.stdout.isatty():
        question = "How many clients must be awake before a round opens?"
        default, asked = max(1, min(_USUAL_MIN_CLIENTS, n_tokens // 2)), 0
        while asked < 1:
            asked = typer.prompt(question, default=default, type=int, err=True)
        return replace(config, min_clients=asked)
    typer.echo(
        "Round 1 opens with the first client that enrols. To wait for more, use init --min-clients N or set "
        f"min_clients in {directory}/server.toml.",
        err=True,
    )
    return config


@app.command()
def token(
    directory: Directory = HOME,
    count: Annotated[int, typer.Option(min=1, help="How many.")] = 1,
    days: Annotated[float, typer.Option(help="That they can be used.")] = 30.0,
) -> None:
    """Print further one-time tokens; a running server knows them at once."""
    from hushrank.live.server.creation import make_tokens

    for made in make_tokens(directory, count, days=days):
        typer.echo(made)


@app.command()
def status(directory: Directory = HOME, json_: AsJson = False) -> None:
    """Say what the federation's file says: rounds, clients, refusals, privacy spent."""
    from hushrank.live.server.events import describe_status
    from hushrank.live.server.held_file import describe_copies
    from hushrank.live.server.status import read_status
    from hushrank.live.server.store import FILE

    if (copies := describe_copies(directory / FILE)) is not None:
        typer.echo(copies, err=True)
    try:
        found = read_status(directory)
    except Exception as error:  # Why any: what is left of a file that was deleted or replaced can be anything
        if copies is None:
            raise
        raise typer.Exit(1) from error
    if json_:
        print_json(found)
    else:
        typer.echo(describe_status(found))


@app.command()
def clients(directory: Directory = HOME, json_: AsJson = False) -> None:
    """List the clients by their numbers: answers, refusals, and how much the aggregation rule trusts each."""
    from hushrank.live.server.events import describe_clients
    from hushrank.live.server.status import read_clients

    found = read_clients(directory)
    if json_:
        print_json({"clients": found})
    else:
        typer.echo(describe_clients(found))


@app.command()
def forget(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="Number or pseudonym, as clients lists them.")],
    directory: Directory = HOME,
    json_: AsJson = False,
) -> None:
    """Let a client leave, and forget what it taught the ranker; a running server begins at once, again says how far."""
    from hushrank.live.server.erasures import call_back, describe_awaited, forget_client, read_erasure

    pseudonym = forget_client(directory, client)
    found = read_erasure(directory, pseudonym)
    assert found is not None
    if json_:
        print_json({"client": pseudonym, **found.as_json(), "call_back": call_back(directory)})
        return
    steps = f", {found.step} of {found.steps} steps" if found.steps else ""
    typer.echo(f"client {client} ({pseudonym}) has left; forgetting it: {found.state}{steps}")
    if (needed := call_back(directory)) is not None:
        typer.echo(f"It waits for {describe_awaited(needed)}.", err=True)


@app.command()
def recover(
    directory: Directory = HOME,
    skip: Annotated[
        bool, typer.Option("--skip", help="Give missing rounds up and go on after the highest that a client has seen.")
    ] = False,
) -> None:
    """Decide what becomes of rounds that clients have seen and this file lacks; a running server hears of it."""
    from hushrank.live.server.recovery import describe_missing, give_up_missing

    typer.echo(give_up_missing(directory) if skip else describe_missing(directory))


@app.command()
def export(
    directory: Directory = HOME,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The safetensors file; JSON is written beside it.")
    ] = Path("ranker.safetensors"),
    json_: AsJson = False,
) -> None:
    """Write the newest ranker as a file that the other commands read."""
    from hushrank.live.server.status import export_newest

    origin = export_newest(directory, file)
    if json_:
        print_json({"file": str(file), **origin})
    else:
        typer.echo(f"{file}: the ranker of {origin['federation']!r} after {origin['rounds']} rounds")
        typer.echo(f"Use it: hushrank evaluate {file} --data DIR", err=True)
