"""What the simulator is asked to do, with everything resolved: data loaded, people and ranker made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hushrank.aggregation.named import CheckedRule
from hushrank.aggregation.server_step import ServerStep
from hushrank.attacks.aim import aim_attack
from hushrank.attacks.false_rewards import FalseRewards
from hushrank.attacks.tactics import Tactics
from hushrank.clicks.table import TableUser
from hushrank.federation.cohort import Population
from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import Exchange, UpdateExchange
from hushrank.federation.groups import Group
from hushrank.federation.personal import personal_places
from hushrank.federation.replay import Replay
from hushrank.federation.summation import OpenSum, Summation
from hushrank.learners.named import PDGD, NamedLearner
from hushrank.privacy.protection import Protection
from hushrank.privacy.quorum import Quorum
from hushrank.privacy.sum_format import SumFormat
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.remedies.remedy import Remedy
from hushrank.streams import Purpose
from hushrank.types import Array, Attack, Dataset, User
from hushrank.unlearning.lengths import count_kept, is_kept

FUSED = (UpdateExchange.name, Evolution.name)  # what clients may send in fast engines: they have kernels for no other


@dataclass(frozen=True, slots=True)
class Method:
    """How a ranker is trained: all that a compiled program depends on beside the shapes of its inputs."""

    ranker: LinearRanker | MlpRanker
    population: Population
    batch: int | None = None  # a number: central PDGD, gradients of so many interactions summed at the same weights
    learner: NamedLearner = PDGD  # how a client reads one interaction
    remedy: Remedy = Remedy()  # noqa: RUF009 - frozen: what is done about clients that differ
    learning_rate: float = 0.1
    exchange: Exchange = UpdateExchange()  # noqa: RUF009 - frozen: what clients send, and what protects it
    summation: Summation = OpenSum()  # noqa: RUF009 - frozen: how updates are added up
    attack: Attack | Tactics[Attack] | None = None  # what malicious clients send instead; None: everybody is honest
    misreports: FalseRewards | Tactics[FalseRewards] | None = None  # the same of rewards
    n_malicious: int = 0  # the clients with the lowest ids
    rule: CheckedRule | None = None  # how all updates at once become one; None: their weighted mean
    server_step: ServerStep = ServerStep()  # noqa: RUF009 - frozen: FedAvg
    k: int = 10  # results on a page
    stride: int = 1  # rounds of the streams from one step of the training to the next
    first_round: int = 1  # of the streams: that of the first step
    keep_every: int | None = None  # clients keep the lengths of their updates in rounds 1, 1 + keep_every, ...
    calibrates: bool = False  # whether updates are scaled to lengths that clients kept before (`Setting.kept`)
    keeps_sums: bool = False  # whether it is known what each client has added to the ranker
    noise_number: int | None = None  # of noise that no other training of the same rounds has (`draws.noise_key`)

    def round_of(self, step: int) -> int:
        """The round whose draws a step of the training has: who takes part, queries, clicks, noise, attacks.

        (Numbers of JAX alike.) Why a case of its own: programs of usual trainings stay as they are.
        """
        if self.stride == 1 and self.first_round == 1:
            return step
        return self.first_round + (step - 1) * self.stride

    @property
    def keeps_updates(self) -> bool:
        """Whether something is done with each client's update beside sending it."""
        return self.keep_every is not None or self.calibrates or self.keeps_sums

    def notes(self, round: int) -> bool:
        """Whether clients keep the lengths of this round's updates."""
        return self.keep_every is not None and bool(is_kept(round, self.keep_every))

    @property
    def n_params(self) -> int:
        return sum(part.size for part in self.ranker.parameters)

    @property
    def n_sent(self) -> int:
        """Numbers of a message."""
        return self.n_params + self.remedy.n_extra(self.n_params)

    @property
    def protection(self) -> Protection:
        """What is done to messages before and after they leave."""
        return self.exchange.protection

    @property
    def is_secure(self) -> bool:
        """Whether the server sees only sums."""
        return self.summation.is_secure

    @property
    def secure_sum(self) -> SumFormat | None:
        """How updates are written for a secure sum; None: the server sees each of them."""
        return self.summation.format

    @property
    def has_liars(self) -> bool:
        """Whether some clients send something else than what they learnt."""
        return self.attack is not None and self.n_malicious > 0

    @property
    def is_gathered(self) -> bool:
        """Whether all updates of a round are needed at once."""
        return self.rule is not None or self.has_liars

    @property
    def n_personal(self) -> int:
        return len(personal_places(self.ranker))

    @property
    def has_own_rankers(self) -> bool:
        """Whether clients rank with different rankers."""
        return self.n_personal > 0 or self.remedy.has_memory

    @property
    def rows_per_update(self) -> int:
        """Clients (or, central, interactions) behind one step of the server, at most."""
        return self.population.most_sampled if self.batch is None else self.batch

    @property
    def quorum(self) -> Quorum:
        quorum = self.protection.quorum(is_secure=self.is_secure)
        return quorum if self.rule is None else quorum.raised(self.rule.n_needed)

    @property
    def updates_per_round(self) -> int:
        """Steps of the server in a round: one, or a central round's interactions in batches."""
        return 1 if self.batch is None else self.population.interactions[0] // self.batch

    @property
    def counts_alike(self) -> bool:
        """Whether every message weighs 1, however often its client searched."""
        return self.protection.counts_alike

    @property
    def divisor(self) -> float | None:
        """What a sum is divided by: a constant under sound protection, None for the weights that arrived."""
        return self.protection.divisor(float(self.population.cohort_size))

    @property
    def lists_per_row(self) -> int:
        """Lists that a row shows at once: an evolution strategy's do not wait for each other."""
        return self.exchange.lists_at_once(self.population.interactions)

    @property
    def local_steps(self) -> int:
        """Interactions one after another on a client between two steps of the server."""
        return max(self.population.interactions) if self.batch is None else 1


def without_clients(method: Method, absent: Sequence[int]) -> Method:
    """The method after these clients left, beside those that left before; nobody else's draws change."""
    population = replace(method.population, absent=tuple(sorted({*method.population.absent, *absent})))
    return replace(method, population=population, exchange=method.exchange.among(population.n_present))


@dataclass(frozen=True, slots=True)
class Setting:
    """One experiment: every user x fold x repeat is trained on its own from the same beginning."""

    dataset: Dataset
    users: tuple[tuple[str, User], ...]  # (name, person)
    method: Method
    rounds: int
    repeats: int = 1
    seed: int = 0
    eval_every: int = 10  # rounds between two looks at the test and validation queries
    replays: tuple[Replay, ...] | None = None  # of each fold's training queries; None: people are simulated
    start: tuple[float, ...] | None = None  # [n_params] the first ranker of every cell; None: the ranker's own
    # Of each fold's clients, or of each fold's in each repeat, fold by fold; None: all are alike.
    groups: tuple[tuple[Group, ...], ...] | None = None
    starts: Array | None = None  # [n_users, n_folds, repeats, n_params] the first ranker of each cell, before `start`
    warm_up: Setting | None = None  # what is trained before: its last rankers are the first ones here
    purpose: Purpose | None = None  # what all draws are for; None: for the run itself
    # [n_users, n_folds, repeats, n_clients, n_kept] what clients kept; in step s theirs is number s - 1. NaN: nothing
    kept: Array | None = None

    def __post_init__(self) -> None:
        check_setting(self)

    @property
    def n_kept(self) -> int:
        """Lengths that each client keeps."""
        return 0 if self.method.keep_every is None else count_kept(self.rounds, self.method.keep_every)

    @property
    def is_divided_anew(self) -> bool:
        """Whether clients differ in another way in every repeat."""
        return self.groups is not None and len(self.groups) > len(self.dataset.folds)

    def place_of(self, fold: int, repeat: int) -> tuple[int, int]:
        """The first (fold, repeat) with the same training queries and groups."""
        return (fold, repeat) if self.is_divided_anew else (fold, 0)

    def groups_of(self, fold: int, repeat: int) -> tuple[Group, ...]:
        """The groups of a training's clients; one where all are alike."""
        if self.groups is not None:
            return self.groups[fold * self.repeats + repeat if self.is_divided_anew else fold]
        return (Group("all", self.dataset.folds[fold].train),)


def attack_of(setting: Setting, fold: int) -> Attack | Tactics[Attack] | None:
    """What malicious clients do in a fold's trainings; it knows what people search for there."""
    return aim_attack(setting.method.attack, setting.method.ranker, setting.dataset.folds[fold].train)


def attacks_of(setting: Setting, folds: Sequence[int]) -> tuple[Attack | Tactics[Attack] | None, ...]:
    """Of several trainings, by their folds."""
    known = {fold: attack_of(setting, fold) for fold in dict.fromkeys(folds)}
    return tuple(known[fold] for fold in folds)


def check_setting(setting: Setting) -> None:
    """Refuse clients that differ where nothing can tell them apart."""
    method, n_groups = setting.method, setting.method.population.n_groups
    n_folds = len(setting.dataset.folds)
    divisions = ((),) * n_folds if setting.groups is None else setting.groups
    if len(divisions) not in (n_folds, n_folds * setting.repeats):
        raise ValueError(
            f"groups are given {len(divisions)} times: give them for every fold, or every fold and repeat."
        )
    if any((len(groups) or 1) != n_groups for groups in divisions):
        raise ValueError(f"the population has {n_groups} groups: every fold must describe as many.")
    if n_groups > 1 and (method.batch is not None or setting.replays is not None):
        raise ValueError("groups of clients need simulated people in a federation: no central training, no click log.")
    if method.n_personal and (method.batch is not None or not method.exchange.has_personal):
        raise ValueError("personal parameters are for clients that send updates: not for central training or foltr-es.")
    check_remedy(method, has_log=setting.replays is not None)
    check_steps(setting)
    check_kept(setting)


def check_kept(setting: Setting) -> None:
    """Refuse to keep or to use lengths and sums of updates where there are none, or none alone."""
    method = setting.method
    if not method.keeps_updates:
        return
    if method.batch is not None or not method.exchange.has_personal:
        raise ValueError("lengths and sums of updates are of clients that send some: not central training or foltr-es.")
    if method.remedy.has_memory:
        raise ValueError(
            "lengths and sums of updates are of the update alone, but this remedy sends and keeps more: leave it out."
        )
    if method.keep_every is not None and (method.keep_every < 1 or (method.stride, method.first_round) != (1, 1)):
        raise ValueError("keep_every must be at least 1, in a training of all rounds from the first on.")
    if method.keeps_sums:
        check_sums(method)
    if method.calibrates:
        check_lengths(setting)


def check_sums(method: Method) -> None:
    """Refuse sums where a client's part of the ranker is no sum of shares, or where its update hides."""
    if method.rule is not None or method.server_step.optimiser != "sgd" or method.is_secure:
        raise ValueError(
            "what a client added to the ranker is known only with aggregation=mean, server_optimiser=sgd and no "
            "secure_sum."
        )
    if method.protection.n_makers:
        raise ValueError("what a client added to the ranker is not known where clients add noise to their updates.")


def check_lengths(setting: Setting) -> None:
    cells = (len(setting.users), len(setting.dataset.folds), setting.repeats, setting.method.population.n_clients)
    if setting.kept is None or setting.kept.shape[:-1] != cells or setting.kept.shape[-1] < setting.rounds:
        raise ValueError(
            f"updates are scaled to kept lengths: give those of {cells} (users, folds, repeats, clients) and at least "
            f"{setting.rounds} steps."
        )
    if setting.method.first_round != 1:
        raise ValueError("updates are scaled to lengths that were kept from round 1 on: begin there.")


def check_steps(setting: Setting) -> None:
    """Refuse rounds that the streams do not have, that cannot be left out, or that would all be lost."""
    method, population = setting.method, setting.method.population
    if population.absent and method.protection.n_makers > population.n_present:
        raise ValueError(
            f"{population.n_present} clients are left, but {method.protection.n_makers} must make the noise of a round "
            "together: every round would be lost."
        )
    if method.stride < 1 or method.first_round < 1:
        raise ValueError(
            f"stride is {method.stride} and first_round {method.first_round}: both must be at least 1, as rounds are."
        )
    if method.stride > 1 and population.is_rotation:
        raise ValueError(
            "with sampling=rotation no round can be left out: every n-th round may be the same clients' turn, and they "
            "would answer without the rests that they were promised. Repeat all rounds (--every 1, --method retrain)."
        )
    if method.stride > 1 and len(method.protection.echo) > 1:
        raise ValueError(
            "stride is above 1, but the noise of this mechanism is taken back in the next rounds: none can be left out."
        )


def check_remedy(method: Method, *, has_log: bool) -> None:
    """Refuse remedies where clients take no local steps of their own, or where all updates must be alike."""
    remedy = method.remedy
    if remedy == Remedy():
        return
    if method.batch is not None or not method.exchange.has_personal or has_log:
        raise ValueError("a remedy needs simulated clients that send updates: not central training, foltr-es or a log.")
    if remedy.has_memory and method.is_gathered:
        raise ValueError("a remedy that keeps something on clients needs aggregation=mean, and no attack.")


def why_not_fast(setting: Setting) -> str | None:
    """What the fast engines cannot do and only the plain one can; None when they can do it all."""
    method = setting.method
    if setting.replays is not None:
        return "a click log"
    if method.learner != PDGD and method.learner.pull is None:
        return f"learner={method.learner.name}"
    if method.has_liars and method.protection.n_makers:
        return "attack with noise in every upload"  # which the attack would see, and which they draw for the sum alone
    if method.misreports is not None and method.n_malicious:
        return "attack=false-rewards"  # they add up rewards as they come, and keep no message
    if method.exchange.name not in FUSED:
        return f"messages={method.exchange.name}"
    if reason := method.protection.why_not_fast(method.population.interactions):
        return reason
    people = [
        *setting.users,
        *((group.name, group.user) for group in setting.groups_of(0, 0) if group.user is not None),
    ]
    return next((f"clicks={name}" for name, user in people if not isinstance(user, TableUser)), None)


def why_not_compiled(method: Method) -> str | None:
    """What the fused loop can do and the compiled program (`xla`) cannot."""
    if method.learner != PDGD:
        return f"learner={method.learner.name}"
    return method.exchange.why_not_compiled


def why_not_plain(method: Method) -> str | None:
    """What the plain engine cannot do."""
    if method.batch is not None and method.server_step.optimiser != "sgd":
        return f"server_optimiser={method.server_step.optimiser} in central training"
    return None


def is_fusable(method: Method) -> bool:
    """Whether the fused loop can do it. Central training only with plain steps: they are taken inside the kernel."""
    return method.batch is None or method.server_step.optimiser == "sgd"
