"""Which engine computes a setting, and why that one."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.engine.device import ENGINES, has_numba
from hushrank.engine.setting import Setting, is_fusable, why_not_fast, why_not_plain
from hushrank.learners.named import PDGD

_ASKED = "asked for"


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine with the reason for it."""

    name: str  # numba, xla or plain
    reason: str  # half a sentence, for people
    is_fallback: bool = False  # plain, because what is faster cannot do it


def choose_engine(setting: Setting, *, wanted: str, platform: str, devices: int | None = None) -> EngineChoice:
    """`numba`, the fused loop, where it can be used; `xla` where the method has a fast twin; else `plain`."""
    if wanted not in ENGINES:
        raise ValueError(f"engine is {wanted!r}, must be one of {', '.join(ENGINES)}.")
    only_plain = why_not_fast(setting)
    if wanted == "plain" or (wanted == "auto" and only_plain):
        if reason := why_not_plain(setting.method):
            raise ValueError(f"the plain engine does not do {reason}: use server_optimiser=sgd or another engine.")
        if wanted == "plain":
            return EngineChoice("plain", _ASKED)
        return EngineChoice("plain", f"the fast engines do not do {only_plain}", is_fallback=True)
    if only_plain:
        raise ValueError(f"engine={wanted} does not do {only_plain}: leave --engine out, the plain engine does.")
    obstacle = why_not_fused(setting, platform=platform, devices=devices)
    if setting.method.learner != PDGD and (obstacle or wanted == "xla"):
        return choose_slow_engine(setting.method.learner.name, obstacle, wanted=wanted)
    if wanted == "numba" and obstacle:
        raise ValueError("engine=numba needs numba, a processor and a linear ranker (or foltr-es): use --engine xla.")
    if wanted != "auto":
        return EngineChoice(wanted, _ASKED)
    if obstacle:
        return EngineChoice("xla", f"numba does not do {obstacle}")
    return EngineChoice("numba", "the fastest for this ranker on a processor")


def why_not_fused(setting: Setting, *, platform: str, devices: int | None) -> str | None:
    """What keeps a setting that has a fast twin out of the fused loop; None: nothing does."""
    method = setting.method
    if not has_numba():
        return "anything here: it is not installed"
    if platform != "cpu":
        return f"device={platform}"
    if (devices or 1) != 1:
        return f"devices={devices}"
    if is_fusable(method):
        return None
    is_central = method.batch is not None and method.server_step.optimiser != "sgd"
    central = f"server_optimiser={method.server_step.optimiser} in central training"
    return central if is_central else "networks with this learner"


def choose_slow_engine(learner: str, obstacle: str | None, *, wanted: str) -> EngineChoice:
    """Of a learner that has a fused form and no other, where the fused loop cannot be used."""
    if wanted != "auto":
        raise ValueError(f"engine={wanted} does not do learner={learner}: leave --engine out.")
    reason = f"learner={learner} has no form but numba's, which does not do {obstacle}"
    return EngineChoice("plain", reason, is_fallback=True)
