"""Six mistakes that a private federation could make, planted into the real mechanisms: an audit must find each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hushrank.audit.audit import AuditOptions, Look, audit_trial
from hushrank.audit.updates import HeardUpdate, UpdateTrial
from hushrank.federation.cohort import Population
from hushrank.privacy.accounting import Training, find_noise, training_epsilon
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.types import Array, DenseUpdate, PrivateUpdate, Weighted

# Why fixed here: an auditor who may choose them afterwards finds a bug in anything. 2 is a usual promise, four rounds
# are the fewest in which noise can repeat more than once, and pilots
# with seeds 1 to 3 said how many runs find all bugs, and how an event is best chosen. So the result has another seed.
CLAIM, DELTA, ROUNDS, RUNS, CONFIDENCE = 2.0, 1e-5, 4, 400_000, 0.999
EVERYBODY = Population(10)
CLIP_NORM = 0.1


class HalvedNoise(SoundGaussian):
    """Adds half of the noise that it is accounted for."""

    __slots__ = ()

    def server_noise(self, n_params: int, *, key: Array) -> Array:
        return 0.5 * super().server_noise(n_params, key=key)


class DoubledClip(SoundGaussian):
    """Lets updates through that are twice as long as the noise was measured for."""

    __slots__ = ()

    def privatise(self, update: DenseUpdate, *, key: Array) -> PrivateUpdate:
        wide = SoundGaussian(2 * self.clip_norm, self.noise_multiplier)
        return wide.privatise(update, key=key)


class LeakedWeight(SoundGaussian):
    """Counts a client as often as it searched."""

    __slots__ = ()

    def privatise(self, update: DenseUpdate, *, key: Array) -> PrivateUpdate:
        return replace(super().privatise(update, key=key), weight=float(update.n_interactions))

    def combine(
        self, messages: Sequence[Weighted], *, n_params: int, cohort: float, key: Array, noise: Array | None = None
    ) -> Array:
        weighed = [HeardUpdate(message.weight * message.delta, 1.0) for message in messages]
        return super().combine(weighed, n_params=n_params, cohort=cohort, key=key, noise=noise)


class ReusedKey(UpdateTrial):
    """A server that draws the noise of every round with the first round's key."""

    __slots__ = ()

    def _publish(self, heard: Sequence[HeardUpdate], keys: Array, round: int, *, noise: Array | None = None) -> Array:
        del round
        return super()._publish(heard, keys, 1, noise=noise)


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A federation that claims more than it keeps."""

    name: str
    says: str  # what is wrong
    make: Callable[[float], UpdateTrial]  # (noise multiplier) -> what is audited
    claimed: Training  # what its accountant believes; the noise multiplier is found


def fitted(claimed: Training) -> Training:
    """With the least noise that keeps the claim, if the accountant is right."""
    return find_noise(claimed, epsilon=CLAIM, delta=DELTA)


def trial_of(protection: SoundGaussian, population: Population = EVERYBODY, relation: str = "zero-out") -> UpdateTrial:
    return UpdateTrial(protection, population, relation, ROUNDS, sees_cohort=relation != "add-remove")


IN_FULL = Training("gaussian", 1.0, ROUNDS)
BUGS = (
    PlantedBug("noise halved", "half of the noise is added", lambda z: trial_of(HalvedNoise(CLIP_NORM, z)), IN_FULL),
    PlantedBug("clip doubled", "updates may be twice as long", lambda z: trial_of(DoubledClip(CLIP_NORM, z)), IN_FULL),
    PlantedBug(
        "weight leaked", "an update counts once per search", lambda z: trial_of(LeakedWeight(CLIP_NORM, z)), IN_FULL
    ),
    PlantedBug(
        "key reused",
        "every round has the first round's noise",
        lambda z: ReusedKey(SoundGaussian(CLIP_NORM, z), EVERYBODY, "zero-out", ROUNDS),
        IN_FULL,
    ),
    PlantedBug(
        "relation wrong",
        "add-remove is claimed at the price of zero-out, with 9 of 10 clients in each round",
        lambda z: trial_of(SoundGaussian(CLIP_NORM, z), Population(10, cohort=9), "add-remove"),
        IN_FULL,
    ),
    PlantedBug(
        "sampling ignored",
        "a tenth of the clients is accounted for, drawn independently, but everybody takes part",
        lambda z: trial_of(SoundGaussian(CLIP_NORM, z)),
        Training("gaussian", 1.0, ROUNDS, sampling=0.1, scheme="poisson"),
    ),
)


def audit_bug(bug: PlantedBug, *, runs: int = RUNS, seed: int = 7) -> Look:
    """The whole training: what it claims, and what is measured."""
    noisy = fitted(bug.claimed)

    def claim(rounds: int) -> float:
        return training_epsilon(replace(noisy, rounds=rounds), delta=DELTA)

    options = AuditOptions(runs=runs, confidence=CONFIDENCE, seed=seed)
    return audit_trial(bug.make(noisy.noise_multiplier), claim, delta=DELTA, options=options)[-1]
