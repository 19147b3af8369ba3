"""`hushrank forget`: somebody leaves, and a finished run forgets them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer


def forget(
    context: typer.Context,
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="Directory of a finished fpdgd run, or of one in which others left before."),
    ] = None,
    clients: Annotated[str | None, typer.Option(help="Who leaves, by number: 3,7 or 0-49.")] = None,
    method: Annotated[
        str, typer.Option(help="eraser, fresh, retrain, rollback, continue or subtract; see docs/howto/forget.md.")
    ] = "eraser",
    local_steps: Annotated[
        int | None,
        typer.Option(metavar="N", help="eraser, fresh: searches of a client in a round; default 3/5 of the run's."),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(metavar="N", help="Repeat every N-th round only; default the run's keep_every, else 10."),
    ] = None,
    no_calibration: Annotated[
        bool, typer.Option("--no-calibration", help="eraser: updates keep their own lengths.")
    ] = False,
    leap: Annotated[
        float | None, typer.Option(metavar="X", help="fresh: steps of the server are X times as long; default --every.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also retrain without the leavers and report the distance to that.")
    ] = False,
    extra_epsilon: Annotated[
        float | None,
        typer.Option(metavar="X", help="privacy=sound: agree that those who stay spend X above the run's epsilon."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory; default RUN/forgotten/<method>-<clients>.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue in --out, or begin there.")] = False,
    verify: Annotated[
        Path | None, typer.Option(metavar="RECORD", help="Only check the signature of an erasure record.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="PUBLIC", help="With --verify: the public key that must have signed it.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    engine: Annotated[str, typer.Option(help="numba (fused), xla (JAX), plain or auto; equal to rounding.")] = "auto",
    plugin: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE", help="Import a module (or a .py file) that the run's recipe needs; repeatable."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Batches at once; default one per processor. Does not affect results.")
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time between two checkpoints. Does not affect results.")
    ] = 10.0,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Forget clients of a finished run: a new ranker without them, what that took, and a signed record."""
    from hushrank.cli.output import print_forgotten, print_json, print_record
    from hushrank.cli.running import show_work
    from hushrank.recipes.plugin import load_plugins
    from hushrank.runs.environment import current_command
    from hushrank.runs.forget import ForgetWishes, check_erasure, erase_clients, place_of, read_wanted
    from hushrank.runs.forget_methods import Forgetting
    from hushrank.runs.run import RunOptions

    if verify is not None:
        refuse_more(context, ("verify", "key", "json_", "quiet"))
        print_record(check_erasure(verify, key=key), as_json=json_)
        return
    if key is not None:
        raise ValueError("--key is for --verify: it names who must have signed a record.")
    load_plugins(plugin or [])
    how = Forgetting((), method, local_steps, every, not no_calibration, leap)
    wishes = ForgetWishes(compare, extra_epsilon)
    request, wishes = read_wanted(run, clients, how, wishes, unfinished=out if resume else None)
    options = RunOptions(
        out=out or place_of(request),
        resume=resume,
        device=device,
        engine=engine,
        workers=workers,
        checkpoint_seconds=checkpoint_every,
        command=current_command(),
    )
    work = partial(erase_clients, request, wishes=wishes)
    again = f"hushrank forget --resume --out {options.out}"
    done = show_work(work, options, quiet=quiet, title="forget", again=again)
    if json_:
        print_json(done.result)
    else:
        print_forgotten(done.directory, quiet=quiet)


def refuse_more(context: typer.Context, allowed: tuple[str, ...]) -> None:
    """Refuse what was typed beside --verify and would do nothing."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in allowed and source is not None and source.name == "COMMANDLINE":
            typed = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.opts[0].upper()
            raise ValueError(f"--verify only checks a record: leave {typed} out.")
