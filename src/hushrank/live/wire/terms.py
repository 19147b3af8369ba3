"""The stages that an agreement names: server and clients make the same ones from it."""

from __future__ import annotations

from hushrank.aggregation.server_step import ServerStep
from hushrank.federation.evolution import Evolution
from hushrank.federation.protection import Protection
from hushrank.live.wire.agreement import Agreement
from hushrank.privacy.accounting import Account, Training, describe_account
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import PaperNoise, SoundLaplace
from hushrank.privacy.none import GUARANTEE as NOTHING
from hushrank.privacy.randomised_response import describe_guarantee, epsilon_bound
from hushrank.privacy.renyi import Spend, composed_epsilon
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.rankers.named import named_ranker
from hushrank.streams import seed_key, stream
from hushrank.types import Array

SEEDED = "no privacy: seeded"
_REPEAT, _FOLD = 0, 1  # Why: a seeded federation draws what the simulator draws in its first repeat of fold 1


def ranker_of(agreement: Agreement) -> LinearRanker | MlpRanker:
    return named_ranker(
        agreement.ranker,
        n_features=agreement.n_features,
        hidden=agreement.hidden,
        activation=agreement.activation,
    )


def count_params(agreement: Agreement) -> int:
    return sum(part.size for part in ranker_of(agreement).parameters)


def server_step_of(agreement: Agreement) -> ServerStep:
    fade = agreement.rounds if agreement.server_fade else None
    return ServerStep(agreement.server_optimiser, agreement.server_rate, fade)


def evolution_of(agreement: Agreement) -> Evolution | None:
    """How clients try, judge and answer; None: they learn by gradients."""
    if agreement.reward is None or agreement.sigma is None or agreement.antithetic is None or agreement.p is None:
        return None
    return Evolution(agreement.reward, agreement.sigma, agreement.antithetic, agreement.p, k=agreement.k)


def protection_of(agreement: Agreement) -> Protection | None:
    """The mechanism on updates; None: there is none, or they are an evolution strategy's (whose rewards have p)."""
    if agreement.epsilon is not None and agreement.sensitivity is not None and agreement.n_clients is not None:
        return PaperNoise(agreement.epsilon, agreement.sensitivity, agreement.n_clients)
    if agreement.clip_norm is None or agreement.noise_multiplier is None or agreement.placement is None:
        return None
    made = SoundGaussian if agreement.mechanism == "gaussian" else SoundLaplace
    return made(agreement.clip_norm, agreement.noise_multiplier, agreement.placement, agreement.n_honest)


def key_of(agreement: Agreement) -> Array:
    """[2] the key of all draws of a seeded federation: the simulator's own."""
    if agreement.seed is None:
        raise ValueError("this federation has no seed: its draws come from the operating system's entropy.")
    return stream(seed_key(agreement.seed), _REPEAT, _FOLD)


def price_of(agreement: Agreement) -> Spend | None:
    """What one answer costs a client; None: nothing is promised, so no account is kept."""
    evolution, protection = evolution_of(agreement), protection_of(agreement)
    if evolution is not None and evolution.p < 1:
        return Spend("pure", epsilon_bound(evolution.p, len(evolution.finite.values)), times=agreement.interactions)
    if isinstance(protection, PaperNoise):
        return protection.spend(count_params(agreement))
    if protection is not None and protection.noise_multiplier > 0:
        return protection.spend()
    return None


def total_epsilon_of(agreement: Agreement) -> float | None:
    """What all rounds together cost a client that answers in each; None: nothing is promised."""
    price = price_of(agreement)
    if price is None or agreement.rounds is None:
        return None
    return composed_epsilon(
        [Spend(price.mechanism, price.ratio, price.times * agreement.rounds)], delta=agreement.delta
    )


def guarantee_of(agreement: Agreement) -> str:
    """In words: what protects a client of this federation, and against whom."""
    promised = _promise(agreement)
    return f"{SEEDED}; without the seed: {promised}" if agreement.is_seeded else promised


def _promise(agreement: Agreement) -> str:
    evolution, protection = evolution_of(agreement), protection_of(agreement)
    if evolution is not None:
        epsilon = epsilon_bound(evolution.p, len(evolution.finite.values))
        return describe_guarantee(epsilon, n_interactions=agreement.interactions)
    if protection is None:
        return NOTHING
    if isinstance(protection, PaperNoise):
        return protection.describe(count_params(agreement))
    total = total_epsilon_of(agreement)
    if total is None or agreement.mechanism is None or agreement.rounds is None:
        return protection.guarantee
    training = Training(agreement.mechanism, protection.noise_multiplier, agreement.rounds)
    account = Account(training, total, agreement.delta, "rdp", "epsilon")
    return describe_account(account, placement=protection.placement, n_honest=protection.n_honest)
