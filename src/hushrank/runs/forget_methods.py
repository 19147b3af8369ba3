"""Ways to forget clients: from the setting of a run to that of the training which forgets them.

All of them train without the clients that leave: their seats stay empty, and nobody else's draws move. n_i are a
client's searches in a round of the run, T its rounds, dt the rounds from one that is repeated to the next.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from hushrank.engine.inputs import cell_key
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Method, Setting, without_clients
from hushrank.federation.cohort import Population, cohort_mask
from hushrank.keys import hint_names
from hushrank.types import Array
from hushrank.unlearning.lengths import count_kept

EVERY = 10  # dt, where a run has kept nothing [thesis, Section 6.2]


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Which clients are forgotten, and how."""

    clients: tuple[int, ...]  # ids of those that leave
    method: str = "eraser"
    local_steps: int | None = None  # n': searches of a client in a round; None: three fifths of its own
    every: int | None = None  # dt; None: as often as the run has kept lengths
    is_calibrated: bool = True  # whether updates get the lengths that were kept
    leap: float | None = None  # how many times as long the server's steps are; None: dt

    @property
    def needs_lengths(self) -> bool:
        return self.method == "eraser" and self.is_calibrated


@dataclass(frozen=True, slots=True)
class RunMemory:
    """What a finished run has left, by user, fold and repeat."""

    rankers: Array  # [n_users, n_folds, repeats, n_params] the last ones
    lengths: Array | None = None  # [n_users, n_folds, repeats, n_clients, n_kept] of updates; None: not kept


class ForgetMethod(NamedTuple):
    """One way to forget."""

    plan: Callable[[Setting, Forgetting, RunMemory], Setting]
    takes: tuple[str, ...] = ()  # settings of `Forgetting` that it knows
    leaves: tuple[str, ...] = ()  # names in `record.RESIDUES`: what of the leavers may be in the result
    subtracts: bool = False  # whether the leavers' sums are taken from the rankers in the end

    def residues(self, forgetting: Forgetting) -> tuple[str, ...]:
        """What of the leavers this way may leave; nothing: the method is exact."""
        return tuple(name for name in self.leaves if name != "lengths" or forgetting.is_calibrated)


def hash_forgetting(forgetting: Forgetting) -> str:
    """Eight hex digits that differ when anything about it does."""
    return hashlib.sha256(json.dumps(asdict(forgetting), sort_keys=True).encode()).hexdigest()[:8]


def plan_forgetting(setting: Setting, forgetting: Forgetting, memory: RunMemory) -> Setting:
    """The training that forgets; refuses what cannot be forgotten."""
    check_forgetting(forgetting, setting.method.population, keep_every=setting.method.keep_every)
    if setting.method.batch is not None or not setting.method.exchange.has_personal:
        raise ValueError("only clients that send updates can be forgotten: those of fpdgd, not of pdgd or foltr-es.")
    if setting.method.remedy.warning is not None:
        raise ValueError(
            "clients of this run gave data away (its remedy shares queries), and others learnt from them: no training "
            "forgets that. Run the experiment again without those who leave."
        )
    check_took_part(setting, forgetting.clients)
    planned = METHODS[forgetting.method].plan(setting, forgetting, memory)
    check_enough(planned)
    check_drawn_anew(planned, range(1, setting.rounds + 1))
    return planned if METHODS[forgetting.method].subtracts else with_noise_of_its_own(planned, forgetting)


def find_residues(setting: Setting, forgetting: Forgetting) -> tuple[str, ...]:
    """What of the leavers may be left after a training with that setting; nothing: it is exact."""
    given = () if setting.start is None else ("given",)  # Why: a run does not know who trained what it began with
    return (*METHODS[forgetting.method].residues(forgetting), *given)


def with_noise_of_its_own(setting: Setting, forgetting: Forgetting) -> Setting:
    """The setting with noise that no other training has, unless it gives the same rankers. Why: see `noise_key`."""
    digest = hashlib.sha256(repr(forgetting).encode())
    for array in (setting.starts, setting.kept):  # Why: the same clients may leave other rankers in the same way
        digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    number = int.from_bytes(digest.digest()[:4], "big")
    noisy = setting.method.protection.has_noise
    return replace(setting, method=replace(setting.method, noise_number=number if noisy else None))


def erase(setting: Setting, forgetting: Forgetting, memory: RunMemory) -> Setting:
    """From the first ranker on, in the rounds 1, 1 + dt, ... of the run, n' searches each; updates as long as those
    that were kept [thesis, Section 6.1.2]."""
    start = repeat_some(setting, forgetting)
    if not forgetting.is_calibrated:
        return start
    if memory.lengths is None or setting.method.keep_every is None:
        raise ValueError(_NOTHING_KEPT)
    lengths = memory.lengths[..., :: find_every(forgetting, setting.method.keep_every) // setting.method.keep_every]
    return replace(start, method=replace(start.method, calibrates=True), kept=lengths)


def retrain(setting: Setting, forgetting: Forgetting, memory: RunMemory) -> Setting:
    """All rounds of the run again, from its first ranker on."""
    del memory
    return leave_out(setting, forgetting.clients)


def continue_training(setting: Setting, forgetting: Forgetting, memory: RunMemory) -> Setting:
    """T / dt rounds more, from the last ranker on. What server and rule remembered is not: they begin anew."""
    return replace(go_on(setting, forgetting), starts=memory.rankers, warm_up=None)


def roll_back(setting: Setting, forgetting: Forgetting, memory: RunMemory) -> Setting:
    """T / dt rounds more, from the ranker on that the run had before a leaver first took part, in any training."""
    del memory
    if is_secretly_sampled(setting.method):
        raise ValueError(
            "with sampling=poisson and noise rollback would show in which round a leaver was first drawn, and epsilon "
            "counts on nobody knowing that. Take --method continue."
        )
    first = int(find_first_rounds(setting, forgetting.clients).min())
    if first == 1:
        return go_on(setting, forgetting)
    before = replace(setting, rounds=first - 1, eval_every=first - 1, method=forget_lengths(setting.method))
    return replace(go_on(setting, forgetting), warm_up=before)


def start_afresh(setting: Setting, forgetting: Forgetting, memory: RunMemory) -> Setting:
    """As `erase`, without lengths: steps of the server that are dt times as long make up for the rounds left out."""
    del memory
    start = repeat_some(setting, forgetting)
    every = find_every(forgetting, setting.method.keep_every)
    leap = float(every) if forgetting.leap is None else forgetting.leap
    step = replace(start.method.server_step, rate=start.method.server_step.rate * leap)
    return replace(start, method=replace(start.method, server_step=step))


def sum_up(setting: Setting, forgetting: Forgetting, memory: RunMemory) -> Setting:
    """The run again, bit by bit, with everybody; beside it, what each client adds to the ranker. `subtract_sums` then
    takes from the last ranker what the leavers have added."""
    del forgetting, memory
    return replace(setting, method=replace(setting.method, keeps_sums=True))


def subtract_sums(params: Array, sums: Array, clients: tuple[int, ...]) -> Array:
    """[n_params] a ranker without what these clients have added to it; sums [n_clients, n_params]."""
    return np.asarray(params - sums[list(clients)].sum(axis=0), params.dtype)


def leave_out(setting: Setting, clients: tuple[int, ...]) -> Setting:
    """The setting without these clients; where all who lie are among them, nobody does."""
    method = setting.method
    if set(range(method.n_malicious)) <= set(clients):
        method = replace(method, attack=None, misreports=None, n_malicious=0)
    return replace(setting, method=without_clients(method, clients))


def repeat_some(setting: Setting, forgetting: Forgetting) -> Setting:
    """The rounds 1, 1 + dt, ... of the run with n' searches each."""
    every = find_every(forgetting, setting.method.keep_every)
    without = shorten(leave_out(setting, forgetting.clients), count_kept(setting.rounds, every))
    steps = count_steps(forgetting, without.method.population)
    population = replace(without.method.population, interactions=steps)
    return replace(without, method=replace(without.method, population=population, stride=every))


def go_on(setting: Setting, forgetting: Forgetting) -> Setting:
    """T / dt rounds after the last."""
    rounds = count_kept(setting.rounds, find_every(forgetting, setting.method.keep_every))
    after = shorten(leave_out(setting, forgetting.clients), rounds)
    return replace(after, method=replace(after.method, first_round=setting.rounds + 1))


def shorten(setting: Setting, rounds: int) -> Setting:
    """So many rounds, looked at as often as all were; lengths are not kept once more."""
    method = forget_lengths(setting.method)
    step = method.server_step
    faded = replace(step, fade=None if step.fade is None else rounds)
    look = max(1, setting.eval_every * rounds // setting.rounds)
    return replace(setting, rounds=rounds, eval_every=look, method=replace(method, server_step=faded))


def forget_lengths(method: Method) -> Method:
    return replace(method, keep_every=None)


def find_every(forgetting: Forgetting, keep_every: int | None) -> int:
    """dt"""
    wanted = keep_every if forgetting.every is None else forgetting.every
    return EVERY if wanted is None else wanted


def count_steps(forgetting: Forgetting, population: Population) -> tuple[int, ...]:
    """n' of each client: as wanted, but never more than its own n; else three fifths of it, as 3 of 5 [thesis,
    Figure 6.3]."""
    wanted = forgetting.local_steps
    return tuple(max(1, 3 * n // 5) if wanted is None else min(wanted, n) for n in population.interactions)


def find_first_rounds(setting: Setting, clients: tuple[int, ...]) -> Array:
    """[n_folds, repeats, n] the first round in which each of these clients is drawn; one above the last: in none."""
    population, ids = setting.method.population, list(clients)
    shape = (len(setting.dataset.folds), setting.repeats)
    keys = np.stack([cell_key(setting, Cell(0, *place)) for place in np.ndindex(shape)])
    first = np.full((len(keys), len(ids)), setting.rounds + 1)
    for round in range(1, setting.rounds + 1):
        drawn = cohort_mask(population, keys, round)[:, ids]
        first = np.where(drawn & (first > round), round, first)
        if (first <= round).all():
            break
    return first.reshape(*shape, -1)


def check_forgetting(forgetting: Forgetting, population: Population, *, keep_every: int | None) -> None:
    """Refuse unknown methods and clients, and settings that a method does not take."""
    if forgetting.method not in METHODS:
        raise ValueError(f"no way to forget is called {forgetting.method!r}; {hint_names(forgetting.method, METHODS)}")
    check_leavers(forgetting.clients, population)
    takes = METHODS[forgetting.method].takes
    for field in fields(Forgetting):
        if field.name not in ("clients", "method", *takes) and getattr(forgetting, field.name) != field.default:
            option = "no-calibration" if field.name == "is_calibrated" else field.name.replace("_", "-")
            raise ValueError(f"method {forgetting.method} takes no --{option}: leave it out.")
    most, steps, every = max(population.interactions), forgetting.local_steps, find_every(forgetting, keep_every)
    if steps is not None and not 1 <= steps <= most:
        raise ValueError(f"local_steps is {steps}, must be from 1 to {most}, the searches of a client in a round.")
    if every < 1 or (forgetting.leap is not None and not 0 < forgetting.leap < math.inf):
        raise ValueError(
            f"every is {every} and leap {forgetting.leap}: every must be at least 1, leap finite and above 0."
        )
    if forgetting.needs_lengths:
        if keep_every is None:
            raise ValueError(_NOTHING_KEPT)
        if every % keep_every:
            raise ValueError(f"every is {every}, must be a multiple of keep_every, which is {keep_every} in this run.")


def check_leavers(clients: tuple[int, ...], population: Population) -> None:
    unknown = [client for client in clients if not 0 <= client < population.n_clients]
    if unknown:
        raise ValueError(f"there is no client {unknown[0]}: this run has the clients 0 to {population.n_clients - 1}.")
    if not clients or len(set(clients)) < len(clients):
        raise ValueError(f"clients is {list(clients)}: name at least one, and each once.")
    if len(clients) == population.n_clients:
        raise ValueError("nobody is left to train with: at least one client must stay. To forget all, delete the run.")


def check_took_part(setting: Setting, clients: tuple[int, ...]) -> None:
    """Refuse to forget who has left no trace."""
    never = (find_first_rounds(setting, clients) > setting.rounds).all(axis=(0, 1))
    if never.any():
        client = clients[int(np.argmax(never))]
        raise ValueError(f"client {client} was drawn for no round of this run: there is nothing of it to forget.")


def check_enough(setting: Setting) -> None:
    """Refuse a training whose rounds would all be lost, because those who stay are too few."""
    most = setting.method.population.most_sampled
    if (needed := setting.method.quorum.needed(most)) > most:
        raise ValueError(f"{most} clients stay in a round, and its rule or its privacy needs {needed}: forget fewer.")


def check_drawn_anew(setting: Setting, before: Iterable[int]) -> None:
    """Refuse to ask the same clients twice where nobody may know who was asked. before: rounds that were drawn already.

    Why: sampling makes an epsilon smaller because each round draws its clients anew. A round that is repeated with the
    same draw tells more about them than two rounds with draws of their own.
    """
    drawn = map(setting.method.round_of, range(1, setting.rounds + 1))
    if is_secretly_sampled(setting.method) and not set(before).isdisjoint(drawn):
        raise ValueError(
            "with sampling=poisson and noise no round can be repeated with the clients that it had: epsilon counts on "
            "clients that are drawn anew in every round. Take --method continue, once, without --compare; or begin a "
            "new run without those who leave, with another --seed."
        )


def is_secretly_sampled(method: Method) -> bool:
    """Whether epsilon is smaller because nobody knows who was drawn."""
    return method.population.is_poisson and method.protection.has_noise


_NOTHING_KEPT = (
    "clients of this run have kept no lengths of updates. Run it with keep_every, such as --set keep_every=10, forget "
    "without calibration, or take another method."
)
METHODS: dict[str, ForgetMethod] = {
    "eraser": ForgetMethod(erase, ("local_steps", "every", "is_calibrated"), leaves=("lengths",)),
    "retrain": ForgetMethod(retrain),
    "continue": ForgetMethod(continue_training, ("every",), leaves=("start",)),
    "subtract": ForgetMethod(sum_up, leaves=("updates",), subtracts=True),
    "rollback": ForgetMethod(roll_back, ("every",)),
    "fresh": ForgetMethod(start_afresh, ("local_steps", "every", "leap")),
}
