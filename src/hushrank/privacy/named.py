"""How updates are privatised, by name, and the settings that the papers used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import PaperNoise, SoundLaplace
from hushrank.privacy.noisy_sum import NoisySum
from hushrank.privacy.none import OpenUpdates
from hushrank.privacy.placement import Placement
from hushrank.privacy.protection import Exposure, UpdateProtection

CLIP_NORM, DELTA = 0.1, 1e-5  # of a sound mechanism, and of Gaussian noise, unless given


@dataclass(frozen=True, slots=True)
class PaperSetting:
    """One column of [fpdgd, Table 2]: a noise level, and the FOLtR-ES setting it was set beside."""

    epsilon: float  # as published, of a round
    sensitivity: float  # Delta, found by grid search
    p: float  # of FOLtR-ES; its epsilon is of one interaction, so the two are no equals, and p = 1 has none at all


PAPER_SETTINGS = {
    "fpdgd-1.2": PaperSetting(1.2, 3.0, 0.25),
    "fpdgd-2.3": PaperSetting(2.3, 3.0, 0.5),
    "fpdgd-4.5": PaperSetting(4.5, 5.0, 0.9),
    "fpdgd-10": PaperSetting(10.0, 5.0, 1.0),
}  # [fpdgd, section 4]


def published_sensitivity(epsilon: float) -> float:
    """The Delta that [fpdgd, section 4] used with an epsilon."""
    for setting in PAPER_SETTINGS.values():
        if setting.epsilon == epsilon:
            return setting.sensitivity
    known = ", ".join(f"{setting.epsilon:g}" for setting in PAPER_SETTINGS.values())
    raise ValueError(f"epsilon is {epsilon}; Delta was published for {known}. For others give the sensitivity too.")


def make_paper_noise(settings: Mapping[str, Any]) -> PaperNoise:
    """From epsilon, n_clients and, unless it is the published one, the sensitivity."""
    if settings.get("epsilon") is None:
        raise ValueError("privacy=paper needs epsilon, of a round: 1.2, 2.3, 4.5 and 10 are published.")
    epsilon, sensitivity = settings["epsilon"], settings.get("sensitivity")
    sensitivity = published_sensitivity(epsilon) if sensitivity is None else sensitivity
    return PaperNoise(epsilon, sensitivity, settings["n_clients"], settings.get("variant", "paper"))


def make_sound_noise(settings: Mapping[str, Any], exposure: Exposure) -> NoisySum:
    """With the noise multiplier that was given, or with just the noise that keeps epsilon over all rounds."""
    made = SoundLaplace if settings.get("mechanism") == "laplace" else SoundGaussian
    noise, placement = settings.get("noise_multiplier"), settings.get("placement") or Placement.server
    sound = made(settings.get("clip_norm") or CLIP_NORM, noise or 0.0, placement, settings.get("n_honest"))
    return sound if noise is not None else sound.fit(settings["epsilon"], exposure)


@dataclass(frozen=True, slots=True)
class Mode:
    """A value of the key `privacy`."""

    says: str  # what it does, in a line
    kind: Callable[[Mapping[str, Any]], str]  # (settings) -> its name in the table of what works together
    make: Callable[[Mapping[str, Any], Exposure], UpdateProtection]  # (settings, exposure) -> the mechanism on updates


MODES = {
    "none": Mode("no protection: updates leave as they are", lambda _: "none", lambda _, __: OpenUpdates()),
    "paper": Mode(
        "as published: weights clipped, Gamma noise that sums to Laplace noise; its caveats in every output",
        lambda _: "paper",
        lambda settings, _: make_paper_noise(settings),
    ),
    "sound": Mode(
        "updates clipped, noise on their sum, composed over all rounds; weight 1 for every client",
        lambda settings: "clients' noise" if settings.get("placement") == Placement.clients else "server's noise",
        make_sound_noise,
    ),
}  # settings: the keys of a recipe or agreement


def make_protection(settings: Mapping[str, Any], exposure: Exposure) -> UpdateProtection:
    """The mechanism that the key `privacy` and its companions ask for."""
    return MODES[settings["privacy"]].make(settings, exposure)
