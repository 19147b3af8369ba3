"""What `hushrank forget` does: clients forgotten in a finished run, what that cost and reached, and a signed record.

Beside the files of a run the directory has `record.json`, with a comparison `retrained/` (the run without the leavers)
and, where the run's clients kept no lengths, `repeated/` (the run once more, with lengths). Once the record is signed,
what holds something of the leavers and is not needed any more is deleted: checkpoints, and of `repeated/` all but the
lengths of those who stay.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from hushrank.data.source import digest_file
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult
from hushrank.files import Json, read_json
from hushrank.recipes.recipe import hash_recipe
from hushrank.runs.directory import FORGETTING, begin_directory, locked, refuse_existing
from hushrank.runs.forget_charge import ForgetCharge, agree_charge
from hushrank.runs.forget_ledger import count_training
from hushrank.runs.forget_measures import Measured, count_work, describe_work, list_figures
from hushrank.runs.forget_methods import (
    Forgetting,
    RunMemory,
    check_forgetting,
    find_every,
    find_residues,
    leave_out,
    plan_forgetting,
)
from hushrank.runs.forgetting import (
    ForgetRequest,
    ForgettingExperiment,
    check_origin,
    check_same,
    forget_clients,
    note_request,
    read_noted,
    read_trained,
    refuse_other,
)
from hushrank.runs.kept import Cells, FilledCells, check_shape, fill_lengths, no_lengths, stack_cells
from hushrank.runs.rankers import read_result
from hushrank.runs.result import KEPT_FILE, RANKERS_FILE, blank_kept, name_cell, read_kept, read_rankers
from hushrank.runs.run import START, Run, RunOptions, close_run, engine_options, run_recipe, train_run
from hushrank.runs.simulation import Simulation, count_lost_rounds
from hushrank.types import Notice
from hushrank.unlearning.record import (
    CheckedRecord,
    Erasure,
    build_record,
    digest_rankers,
    pseudonym,
    sign_record,
    verify_record,
    write_record,
)
from hushrank.unlearning.signing_key import find_key, open_key, read_public

RECORD, RETRAINED, REPEATED = "record.json", "retrained", "repeated"
_FEW, _MOST = 8, 1_000_000  # clients that the name of a directory lists; that a range may have


@dataclass(frozen=True, slots=True)
class ForgetWishes:
    """What is wanted beside forgetting; it does not change the new rankers."""

    compares: bool = False  # with the rankers of a training that never had the leavers
    extra_epsilon: float | None = None  # what may be spent above the epsilon that the run promised


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the clients took part, and what is replaced: the same run, unless others were forgotten in it before."""

    run: Path  # in which everybody took part
    replaced: Path  # whose rankers the new ones replace
    gone: tuple[int, ...] = ()  # clients forgotten before


@dataclass(frozen=True)
class Erasing(ForgettingExperiment):
    """An `Experiment`: forgetting, with what is measured about it."""

    origin: Origin
    before: Cells  # rankers that are replaced
    retrained: Cells | None = None  # those of a training without the leavers; None: not asked for
    noticed: tuple[Notice, ...] = ()

    @property
    def newly(self) -> tuple[int, ...]:
        """Clients that were not forgotten before."""
        return tuple(client for client in self.forgetting.clients if client not in self.origin.gone)

    def foresee(self) -> list[Notice]:
        return [*super().foresee(), *self.noticed, *notice_lost(self.setting)]

    def measure(self, result: CellResult) -> dict[str, float]:
        return {**super().measure(result), **Measured(self.setting, self.before, self.retrained).compare(result)}

    def describe(self) -> Json:
        found = super().describe()
        about = {**found["forgetting"], "newly": list(self.newly), "from": str(self.origin.replaced)}
        return {**found, "forgetting": about}


def erase_clients(request: ForgetRequest, options: RunOptions, wishes: ForgetWishes) -> Run:
    """Forget clients, measure it and sign a record. What cannot be done is refused before anything is written."""
    out = options.out or place_of(request)
    if not options.resume:
        refuse_existing(out)
    elif (done := find_finished(out, request, wishes)) is not None:
        return done
    wishes = recall_wishes(out, wishes)
    asked, (origin, request) = request, find_origin(request)
    if wishes.compares and request.forgetting.method == "retrain":
        raise ValueError("method retrain is what the others are compared with: leave --compare out.")
    open_key(find_key())  # Why here: without a key nothing could be signed in the end
    trained = first = read_trained(origin.run, options.tell)
    is_lent = request.forgetting.needs_lengths and trained.recipe.keep_every is None
    if is_lent:
        trained = with_lengths(trained, request.forgetting)
    kept = None if is_lent else origin.run
    experiment = prepare_erasing(trained, request.forgetting, origin, kept=kept, is_lent=is_lent)
    placed = experiment.check(engine_options(options))
    charge = charge_erasing(experiment, first, wishes)
    begin_directory(out)
    with locked(out):
        note_request(out, asked, origin.run, asdict(wishes))
        if is_lent:
            repeat_run(trained, origin.run, options, out / REPEATED)
            experiment = prepare_erasing(trained, request.forgetting, origin, kept=out / REPEATED, is_lent=True)
        if wishes.compares:
            others = retrain(origin.run, request.forgetting, options, out / RETRAINED)
            experiment = replace(experiment, retrained=others)
        experiment = replace(experiment, charge=charge)
        return conclude(experiment, first, out, train_run(experiment, placed, out, options))


def find_finished(out: Path, request: ForgetRequest, wishes: ForgetWishes) -> Run | None:
    """What has finished in a directory, which stays as it was signed; None: nothing has."""
    if not ((out / "result.json").is_file() and (out / RECORD).is_file() and (out / FORGETTING).is_file()):
        return None
    refuse_other(out, request)
    result, record = read_result(out), verify_record(out / RECORD).record
    if record["to"] != digest_cells(read_rankers(out)):
        raise ValueError(f"{out / RANKERS_FILE} was changed: these are not the rankers that {out / RECORD} names.")
    if wishes.compares and "retrained" not in result["work"]["rounds"]:
        raise ValueError(
            f"{out} has finished without --compare, and its record stays as it was signed. Forget once more with "
            "--compare and another --out: that gives the same rankers."
        )
    with locked(out):
        delete_needless(out, tuple(result["forgetting"]["clients"]))
    return Run(out, result)


def recall_wishes(out: Path, wishes: ForgetWishes) -> ForgetWishes:
    """With what was wished for in this directory before."""
    said = read_json(out / FORGETTING) if (out / FORGETTING).is_file() else {}
    extra = said.get("extra_epsilon") if wishes.extra_epsilon is None else wishes.extra_epsilon
    return ForgetWishes(wishes.compares or said.get("compares", False), extra)


def charge_erasing(experiment: Erasing, trained: Simulation, wishes: ForgetWishes) -> ForgetCharge:
    """What forgetting, and the comparison if there is one, spend of the privacy of those who stay."""
    forgetting, planned = experiment.forgetting, experiment.setting
    others = []
    if wishes.compares:
        other = Forgetting(forgetting.clients, "retrain")
        memory = RunMemory(stack_cells(trained.setting, experiment.trained, what=f"{experiment.origin.run}"))
        others.append(count_training(plan_forgetting(trained.setting, other, memory), other))
    run, extra = experiment.origin.run, wishes.extra_epsilon
    return agree_charge(run, trained.recipe, planned, forgetting, others=others, extra=extra)


def find_origin(request: ForgetRequest) -> tuple[Origin, ForgetRequest]:
    """Where it all began, and the request to forget there everybody who leaves now or has left before."""
    run, forgetting = request
    if not (run / FORGETTING).is_file():
        return Origin(run, run), request
    read_result(run)  # refuses what has not finished
    noted = read_noted(run)
    check_origin(run, noted.run)
    earlier, known = find_origin(noted)
    gone = known.forgetting.clients
    if again := [client for client in forgetting.clients if client in gone]:
        raise ValueError(f"client {again[0]} is forgotten already in {run}: name others.")
    everybody = tuple(sorted((*gone, *forgetting.clients)))
    return Origin(earlier.run, run, gone), ForgetRequest(earlier.run, replace(forgetting, clients=everybody))


def place_of(request: ForgetRequest) -> Path:
    """Where it is forgotten unless somebody says so: RUN/forgotten/<method>-<clients>."""
    origin, (_, forgetting) = find_origin(request)
    ids = "-".join(map(str, forgetting.clients))
    if len(forgetting.clients) > _FEW:
        ids = f"{len(forgetting.clients)}-clients-{hashlib.sha256(ids.encode()).hexdigest()[:8]}"
    return origin.run / "forgotten" / f"{forgetting.method}-{ids}"


def read_wanted(
    run: Path | None, clients: str | None, how: Forgetting, wishes: ForgetWishes, *, unfinished: Path | None
) -> tuple[ForgetRequest, ForgetWishes]:
    """What a person asks for; unfinished: the directory to continue in, which knows it too."""
    if run is not None and clients is not None:
        return ForgetRequest(run, replace(how, clients=parse_clients(clients))), wishes
    if run is not None or clients is not None or unfinished is None:
        raise ValueError(
            "which run, and who leaves? Write hushrank forget RUN --clients 3,7, or --resume with the --out of one "
            "that was stopped."
        )
    if not (unfinished / FORGETTING).is_file():
        raise ValueError(f"nothing was being forgotten in {unfinished}: name the run and --clients.")
    return read_noted(unfinished), recall_wishes(unfinished, wishes)


def check_erasure(record: Path, *, key: str | None) -> CheckedRecord:
    """A record that is as it was signed; key: the public key that must have signed it."""
    return verify_record(record, key=key, own=read_public(find_key()))


def parse_clients(text: str) -> tuple[int, ...]:
    """`3,7` or `0-49`: ids, and ranges of them."""
    ids: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if found is None or int(found[2] or found[1]) - int(found[1]) not in range(_MOST):
            raise ValueError(f"clients is {text!r}: name them by their numbers, such as 3,7 or 0-49.")
        ids += range(int(found[1]), int(found[2] or found[1]) + 1)
    return tuple(sorted(ids))


def with_lengths(trained: Simulation, forgetting: Forgetting) -> Simulation:
    """The run as if its clients had kept lengths, which changes no ranker."""
    every = find_every(forgetting, None)
    method = replace(trained.setting.method, keep_every=every)
    return Simulation(replace(trained.recipe, keep_every=every), replace(trained.setting, method=method))


def repeat_run(trained: Simulation, run: Path, options: RunOptions, out: Path) -> None:
    """The run once more, now with lengths; refuses to use them if they are not of the same rankers."""
    options.say("its clients kept no lengths, so the run is repeated first to learn them")
    start = run / START if (run / START).exists() else None
    run_recipe(trained.recipe, replace(options, out=out, resume=True, start=start))
    check_same(read_rankers(out), read_rankers(run))


def prepare_erasing(
    trained: Simulation, forgetting: Forgetting, origin: Origin, *, kept: Path | None, is_lent: bool
) -> Erasing:
    """kept: the run with the lengths; None: they are not there yet, and what is prepared is only to be checked."""
    method = trained.setting.method
    check_forgetting(forgetting, method.population, keep_every=method.keep_every)
    before = read_rankers(origin.replaced)
    memory = RunMemory(stack_cells(trained.setting, before, what=f"{origin.replaced / RANKERS_FILE}"))
    notices = [notice for notice, applies in ((_LENT, is_lent), (_AGAIN, forgetting.method == "subtract")) if applies]
    if forgetting.needs_lengths:
        lengths, found = read_lengths(trained.setting, kept, forgetting.clients)
        memory, notices = replace(memory, lengths=lengths), [*notices, *found]
    planned = plan_forgetting(trained.setting, forgetting, memory)
    digest = digest_file(origin.replaced / RANKERS_FILE)[:8]
    old = read_rankers(origin.run)
    return Erasing(trained.recipe, planned, forgetting, digest, old, None, origin, before, noticed=tuple(notices))


def read_lengths(setting: Setting, kept: Path | None, leavers: tuple[int, ...]) -> FilledCells:
    if kept is None:
        return FilledCells(no_lengths(setting), [])
    what = f"{kept / KEPT_FILE}"
    lengths = stack_cells(setting, read_kept(kept), what=what)
    check_shape(setting, lengths, what=what)
    return fill_lengths(setting, lengths, leavers)


def retrain(run: Path, forgetting: Forgetting, options: RunOptions, out: Path) -> Cells:
    """The rankers of the run without the leavers, trained in a directory of their own."""
    options.say("the run is trained without the leavers, to compare")
    request = ForgetRequest(run, Forgetting(forgetting.clients, "retrain"))
    silent = replace(options, out=out, resume=True, say=lambda _: None, note=lambda _: None)  # Why: it is said once
    return read_rankers(forget_clients(request, silent).directory)


def conclude(experiment: Erasing, trained: Simulation, out: Path, result: Json) -> Run:
    """The result with the work that it took and the signed record."""
    run, new = count_work(trained.setting, read_result(experiment.origin.run)), count_work(experiment.setting, result)
    repeated = retrained = None
    if (out / REPEATED).is_dir():
        repeated = count_work(trained.setting, read_result(out / REPEATED))
    if experiment.retrained is not None:
        without = leave_out(trained.setting, experiment.forgetting.clients)
        retrained = count_work(without, read_result(out / RETRAINED))
    result = {**result, "work": describe_work(run, new, repeated=repeated, retrained=retrained)}
    record = write_erasure(experiment, trained, out, result)
    done = close_run(out, {**result, "record": record})
    delete_needless(out, experiment.forgetting.clients)
    return done


def delete_needless(out: Path, leavers: tuple[int, ...]) -> None:
    """Delete what holds something of the leavers and is not needed in a directory that has finished."""
    shutil.rmtree(out / "checkpoints", ignore_errors=True)
    (out / KEPT_FILE).unlink(missing_ok=True)
    repeated = out / REPEATED
    if (repeated / KEPT_FILE).is_file():
        blank_kept(repeated, leavers)
        for path in repeated.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != KEPT_FILE:
                path.unlink()


def write_erasure(experiment: Erasing, trained: Simulation, out: Path, result: Json) -> Json:
    """The signed record, in its file too; one of the same rankers stays as it is."""
    identity = f"{hash_recipe(trained.recipe)}-{trained.identity}"
    erasure = Erasure(
        clients=tuple(pseudonym(identity, client) for client in experiment.newly),
        method=experiment.forgetting.method,
        residues=find_residues(experiment.setting, experiment.forgetting),
        old=digest_cells(experiment.before),
        new=digest_cells(read_rankers(out)),
        figures=list_figures(result),
    )
    path = out / RECORD
    if path.is_file():  # Why: stopped between the record and the result, it has signed already
        record = verify_record(path).record
        if (record["from"], record["to"], record["method"]) == (erasure.old, erasure.new, erasure.method):
            return record
    record = sign_record(build_record(erasure, when=datetime.now(UTC)), open_key(find_key()))
    write_record(path, record)
    return record


def notice_lost(setting: Setting) -> list[Notice]:
    """Whether rounds are lost because those who stay are too few."""
    lost = count_lost_rounds(setting)
    if not lost:
        return []
    n_all = len(setting.users) * len(setting.dataset.folds) * setting.repeats * setting.rounds
    sentence = f"{lost:,} of {n_all:,} rounds of the training that forgets are lost: too few clients answer in them."
    advice = "Their privacy, secure sum or rule needs more. A lost round changes nothing: the ranker learns less."
    return [Notice("rounds-lost", sentence, advice)]


def digest_cells(cells: Cells) -> str:
    return digest_rankers({name_cell(*cell): params for cell, params in cells.items()})


_AGAIN = Notice(
    "run-repeated",
    "To know what each client added to the ranker, the whole run is repeated, with everybody.",
    "A federation would have to keep every client's sum on its server.",
    kind="note",
)
_LENT = Notice(
    "lengths-repeated",
    "Clients of this run had kept no lengths of updates, so the run was repeated to learn them.",
    "Devices cannot do that: begin a run in which clients may leave with --set keep_every=10.",
)
