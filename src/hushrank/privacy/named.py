"""How updates are privatised, by name, and the settings that the papers used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hushrank.keys import Settings
from hushrank.privacy.agreed import CLIP_NORM, check_sound, settle_sound
from hushrank.privacy.correlated import CorrelatedGaussian
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import PaperNoise, SoundLaplace
from hushrank.privacy.noisy_sum import NoisySum
from hushrank.privacy.none import OpenUpdates
from hushrank.privacy.placement import Placement
from hushrank.privacy.protection import Exposure, UpdateProtection


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


def make_paper_noise(settings: Settings) -> PaperNoise:
    """From epsilon, n_clients and, unless it is the published one, the sensitivity."""
    if settings.get("epsilon") is None:
        raise ValueError("privacy=paper needs epsilon, of a round: 1.2, 2.3, 4.5 and 10 are published.")
    epsilon, sensitivity = settings["epsilon"], settings.get("sensitivity")
    sensitivity = published_sensitivity(epsilon) if sensitivity is None else sensitivity
    return PaperNoise(
        epsilon,
        sensitivity,
        settings["n_clients"],
        settings.get("variant", "paper"),
        weighs_alike=settings.get("weighs_alike", False),
    )


def settle_paper(settings: Settings) -> dict[str, Any]:
    """With the Delta that was published with its epsilon, unless another is given."""
    epsilon = settings.get("epsilon")
    if epsilon is None or settings.get("sensitivity") is not None:
        return dict(settings)
    return {**settings, "sensitivity": published_sensitivity(epsilon)}


def make_sound_noise(settings: Settings, exposure: Exposure) -> NoisySum:
    """With the noise multiplier that was given, or with just the noise that keeps epsilon over all rounds."""
    noise, placement = settings.get("noise_multiplier"), settings.get("placement") or Placement.server
    common = (settings.get("clip_norm") or CLIP_NORM, noise or 0.0, placement, settings.get("n_honest"))
    sound: NoisySum = SoundGaussian(*common)
    if settings.get("mechanism") == "laplace":
        sound = SoundLaplace(*common)
    elif settings.get("mechanism") == "correlated":
        sound = CorrelatedGaussian(*common, least_step=0.0, separation=exposure.separation)
    return sound if noise is not None else sound.fit(settings["epsilon"], exposure)


def _nothing_to_check(settings: Settings) -> None:
    del settings


@dataclass(frozen=True, slots=True)
class Mode:
    """A value of the key `privacy`; settings: the keys of a recipe or agreement."""

    says: str  # what it does, in a line
    kind: Callable[[Settings], str]  # (settings) -> its name in the table of what works together
    make: Callable[[Settings, Exposure], UpdateProtection]  # (settings, exposure) -> the mechanism on updates
    check: Callable[[Settings], object] = _nothing_to_check  # refuses a recipe's settings before data is read
    settle: Callable[[Settings], dict[str, Any]] = dict  # an operator's settings, with what was left open
    is_accounted: bool = True  # over all rounds, so that their number must be known


MODES = {
    "none": Mode(
        "no protection: updates leave as they are",
        lambda _: "none",
        lambda settings, _: OpenUpdates(settings.get("update_norm")),
        is_accounted=False,
    ),
    "paper": Mode(
        "as published: weights clipped, Gamma noise that sums to Laplace noise; its caveats in every output",
        lambda _: "paper",
        lambda settings, _: make_paper_noise(settings),
        check=make_paper_noise,
        settle=settle_paper,
    ),
    "sound": Mode(
        "updates clipped, noise on their sum, composed over all rounds; weight 1 for every client",
        lambda settings: "clients' noise" if settings.get("placement") == Placement.clients else "server's noise",
        make_sound_noise,
        check=check_sound,
        settle=settle_sound,
    ),
}


def make_protection(settings: Settings, exposure: Exposure) -> UpdateProtection:
    """The mechanism that the key `privacy` and its companions ask for."""
    return MODES[settings["privacy"]].make(settings, exposure)
