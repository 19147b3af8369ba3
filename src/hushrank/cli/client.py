"""`hushrank client`: run, leave, sent."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushrank.cli.default_command import DefaultGroup
from hushrank.cli.output import print_json

if TYPE_CHECKING:
    from hushrank.files import Json
    from hushrank.live.device.client import Report
    from hushrank.live.device.outbox import Answer
    from hushrank.live.device.transport import Stop
    from hushrank.live.pretend.crowd import Pretence, RoundSeen
    from hushrank.live.pretend.liar import Lie
    from hushrank.live.wire.agreement import Agreement

app = typer.Typer(
    cls=DefaultGroup,
    help="Take part in a federation; without a command: run.",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
HOME, PEOPLE = Path("hushrank-client"), Path("hushrank-people")
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object per line on stdout.")]
Home = Annotated[Path, typer.Option(help="The directory of this client.")]
Ca = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Certificates to trust beside the system's (PEM); remembered on joining."),
]


@app.command()
def run(
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="The server; default the one joined, else one on this machine.")
    ] = None,
    home: Annotated[
        Path | None, typer.Option(help=f"The directory of this client; default {HOME}, simulated {PEOPLE}.")
    ] = None,
    token: Annotated[str | None, typer.Option(help="To join with, once; from whoever runs the server.")] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="The most privacy that this device may spend, in all federations together; default 8."),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Join only if agreed, such as privacy=sound, epsilon<=4; remembered."),
    ] = None,
    seeded: Annotated[
        bool, typer.Option("--seeded", help="Join even a simulation with a seed, where nothing is private.")
    ] = False,
    noise_shares: Annotated[
        bool, typer.Option("--noise-shares", help="Join even if clients add the noise, at the price of one message.")
    ] = False,
    spread: Annotated[
        float,
        typer.Option(
            min=0, max=0.5, help="Part of a round's time within which an answer leaves at random; 0: at once."
        ),
    ] = 0.25,
    ca: Ca = None,
    once: Annotated[bool, typer.Option("--once", help="Answer what is asked now and end: for a timer.")] = False,
    simulate: Annotated[
        str | None, typer.Option(metavar="DATA", help="Pretend people on this data instead of a person's own store.")
    ] = None,
    users: Annotated[int, typer.Option(min=1, help="Simulate: how many people.")] = 1,
    first: Annotated[int, typer.Option(min=0, help="Simulate: the first one's number in the simulator.")] = 0,
    clicks: Annotated[str, typer.Option(help="Simulate: how people click.")] = "perfect",
    seed: Annotated[
        int | None, typer.Option(help="Simulate: of searches and clicks; default the federation's.")
    ] = None,
    attack: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Simulate: all of these people's clients lie, as in a recipe's attack."),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Simulate: a setting of the attack.")
    ] = None,
    at_bound: Annotated[
        bool, typer.Option("--at-bound", help="Simulate: every update is made as long as the agreement allows.")
    ] = False,
    steady: Annotated[
        bool, typer.Option("--steady", help="Simulate: every update points where all so far did together.")
    ] = False,
    fold: Annotated[int, typer.Option(min=1, help="Simulate: of the data.")] = 1,
    tokens: Annotated[
        Path, typer.Option(metavar="FILE", help="Simulate: a token per line; line i is person i's.")
    ] = Path("hushrank-server/tokens.txt"),
    rounds: Annotated[int | None, typer.Option(min=1, help="Answer so many rounds, then end.")] = None,
    rebuild_ledger: Annotated[
        bool,
        typer.Option("--rebuild-ledger", help="First replace a lost ledger by one that counts every answer as spent."),
    ] = False,
    json_: AsJson = False,
) -> None:
    """Learn from this device's own searches, round after round; or pretend to (--simulate)."""
    from hushrank.cli.stopping import stopping
    from hushrank.live.device.client import Listeners
    from hushrank.live.device.service import Device, serve_device

    if simulate is None and (users, first, seed, attack, at_bound, steady) != (1, 0, None, None, False, False):
        raise ValueError(
            "--users, --first, --seed, --attack, --at-bound and --steady are for pretend people: give --simulate DATA "
            "too."
        )
    if set_ and attack is None:
        raise ValueError("--set is for the settings of an attack: name one with --attack.")
    if simulate is not None and (token is not None or once or require or seeded or noise_shares):
        raise ValueError(
            "--token, --once, --require, --seeded and --noise-shares are for one device; pretend people have --tokens "
            "FILE and --rounds."
        )
    with stopping() as stop:
        if simulate is None:
            accepted = (tuple(require or ()), seeded, noise_shares, spread)
            device = Device(home or HOME, url, token, epsilon, ca, rounds, once, rebuild_ledger, *accepted)
            ending = str(serve_device(device, Listeners(_tell, _greet, partial(_report, as_json=json_)), stop))
        else:
            lie = _find_lie(attack, set_ or [], at_bound=at_bound, is_steady=steady)
            pretence = _pretence_on(simulate, clicks=lie.poison or clicks, fold=fold, tokens=tokens)
            pretence = replace(pretence, url=url, home=home or PEOPLE, seed=seed, epsilon=epsilon)
            pretence = replace(pretence, ca=ca, rounds=rounds, rebuilds_ledger=rebuild_ledger, lie=lie)
            ending = _pretend(pretence, range(first, first + users), stop, as_json=json_)
    _tell(f"ended: {ending}")


def _pretence_on(data: str, *, clicks: str, fold: int, tokens: Path) -> Pretence:
    """With the data loaded, and nothing else decided."""
    from hushrank.clicks.named import named_user
    from hushrank.data.load import load_dataset
    from hushrank.live.pretend.crowd import Pretence

    dataset = load_dataset(data, folds=[fold], progress=_tell)
    known = tuple(tokens.read_text(encoding="utf-8").split()) if tokens.is_file() else ()
    return Pretence(None, PEOPLE, dataset.folds[0], named_user(clicks, n_grades=dataset.n_grades), tokens=known)


def _find_lie(attack: str | None, assignments: list[str], *, at_bound: bool, is_steady: bool) -> Lie:
    """What pretend people's clients do; without any of these they are honest."""
    from hushrank.live.pretend.liar import find_lie
    from hushrank.recipes.values import parse_assignments

    return find_lie(attack, parse_assignments(assignments), at_bound=at_bound, is_steady=is_steady)


def _pretend(pretence: Pretence, ids: range, stop: Stop, *, as_json: bool) -> str:
    from hushrank.live.pretend.crowd import pretend

    endings = pretend(pretence, ids, stop=stop, show=partial(_show, as_json=as_json), greet=_greet, tell=_tell)
    return "; ".join(sorted(set(endings)))


@app.command()
def leave(
    home: Home = HOME,
    ca: Ca = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="The server also forgets what this client taught the ranker.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="With --forget: wait until that is done, and keep its signed record.")
    ] = False,
) -> None:
    """Leave the federation; what is on this device stays."""
    from hushrank.live.device.service import Device, leave_device

    if wait and not forget:
        raise ValueError("--wait is for --forget: without it there is nothing to wait for.")
    if forget:
        _leave_to_be_forgotten(home, ca, waits=wait)
        return
    left = leave_device(Device(home, ca=ca), _tell)
    _tell(f"left {left}; {home} stays as it is, and may be deleted")


def _leave_to_be_forgotten(home: Path, ca: Path | None, *, waits: bool) -> None:
    from hushrank.cli.stopping import stopping
    from hushrank.live.device.service import Device, leave_to_be_forgotten

    with stopping() as stop:
        record = leave_to_be_forgotten(Device(home, ca=ca), stop, _tell, waits=waits)
    _tell(
        f"deleted here: the lengths of this client's updates. {home} keeps what was seen and clicked, and may be "
        "deleted"
    )
    _tell(
        "deleted at the server once it has forgotten: the old ranker, and everything of single updates; that this "
        "client was enrolled, and how often it answered, stays"
    )
    if record is None:
        _tell(f"to wait for the erasure record: hushrank client leave --forget --wait --home {home}")
    else:
        _tell(f"forgotten; the erasure record is {record}. To check it: hushrank forget --verify {record}")


@app.command()
def sent(home: Home = HOME, json_: AsJson = False) -> None:
    """Every answer that ever left this device, byte for byte."""
    from hushrank.live.device.service import check_home
    from hushrank.live.device.store import STORE, Interactions

    check_home(home)
    with Interactions(home / STORE) as store:
        for answer in store.outbox.answers():
            _print_answer(answer, json_)


def _greet(agreement: Agreement) -> None:
    from hushrank.aggregation.named import STREAMED
    from hushrank.live.wire.terms import guarantee_of

    rule = "" if agreement.aggregation == STREAMED else f", aggregation={agreement.aggregation}"
    _tell(f"joined {agreement.name}: {agreement.method}, {agreement.ranker} ranker, privacy={agreement.privacy}{rule}")
    _tell(f"what protects you: {guarantee_of(agreement)}")


def _report(report: Report, *, as_json: bool) -> None:
    from hushrank.live.device.account import describe_spending
    from hushrank.live.wire.terms import SEEDED
    from hushrank.privacy.ledger import count_rounds_left

    spent = None if report.ledger is None else describe_spending(report.ledger)
    left = None if report.ledger is None else count_rounds_left(report.ledger)
    if as_json:
        told = {"round": report.round, "searches": report.n_lists, "bytes": report.n_bytes, "state": report.state}
        print_json({**told, "reason": report.reason, **_account_of(report), "rounds_left": left})
        return
    what = f"sent {report.n_bytes} bytes" if report.reason is None else f"not counted ({report.reason})"
    unpromised = f"; {SEEDED}" if report.guarantee == SEEDED else ""
    privacy = unpromised if spent is None else f"; {spent}, enough for {left} more{_describe_device(report)}"
    _tell(f"round {report.round}: learnt from {report.n_lists} searches, {what}{privacy}")


def _describe_device(report: Report) -> str:
    if report.device is None:
        return ""
    return (
        f"; this device, in all federations: epsilon {report.device.epsilon_spent:.4g}, against {report.device.against}"
    )


def _account_of(report: Report) -> Json:
    """An epsilon never without its relation and against whom it counts."""
    if report.ledger is None:
        nothing = dict.fromkeys(("epsilon_spent", "device_epsilon_spent", "adjacency", "against"))
        return {**nothing, "guarantee": report.guarantee}
    budget = report.ledger.budget
    whom = {"adjacency": str(budget.adjacency), "against": budget.price.against}
    device = None if report.device is None else report.device.epsilon_spent
    spent = {"epsilon_spent": report.ledger.epsilon_spent, "device_epsilon_spent": device}
    return {**spent, **whom, "guarantee": report.guarantee}


def _show(seen: RoundSeen, *, as_json: bool) -> None:
    if as_json:
        told = {"round": seen.round, "people": seen.n_people}
        print_json({**told, "online/nDCG@10": seen.online, "offline/nDCG@10": seen.offline})
        return
    _tell(
        f"round {seen.round:4d}  people {seen.n_people:4d}  what they saw: nDCG@10 {seen.online:.3f}  "
        f"new ranker on test queries: {seen.offline:.3f}"
    )


def _print_answer(answer: Answer, as_json: bool) -> None:
    from datetime import datetime

    made = datetime.fromtimestamp(answer.made_at).astimezone().isoformat(timespec="seconds")
    if as_json:
        told = {"round": answer.round, "made": made, "state": answer.state, "reason": answer.reason}
        print_json({**told, "weight": answer.weight, "body": answer.body.hex(), "guarantee": answer.guarantee})
        return
    reason = "" if answer.reason is None else f" ({answer.reason})"
    typer.echo(f"round {answer.round}, {made}, {answer.state}{reason}, weight {answer.weight:g}: {answer.guarantee}")
    typer.echo(answer.body.hex(" ", 4))


def _tell(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
