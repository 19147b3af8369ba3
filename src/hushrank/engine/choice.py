"""Which engine computes a setting, and why that one."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.engine.device import ENGINES, PACKAGES, has_engine
from hushrank.engine.setting import Setting, is_fusable, why_not_compiled, why_not_fast, why_not_plain
from hushrank.extras import EXTRAS, advise_install, require_package


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine with the reason for it."""

    name: str  # numba, xla or plain
    reason: str  # half a sentence, for people
    is_fallback: bool = False  # plain, because what is faster cannot do it or is not installed


def choose_engine(setting: Setting, *, wanted: str, platform: str, devices: int | None = None) -> EngineChoice:
    """The engine that was asked for; `auto`: the fastest that is installed and can do it."""
    if wanted not in ENGINES:
        raise ValueError(f"engine is {wanted!r}, must be one of {', '.join(ENGINES)}.")
    able = list_engines(setting, platform=platform, devices=devices)
    name = wanted
    if wanted == "auto":
        name = next((each for each in able if has_engine(each)), able[0] if able else "plain")
    if name not in able:
        raise ValueError(explain_unable(name, setting, platform=platform, devices=devices))
    if name in PACKAGES:
        require_package(PACKAGES[name])
    if wanted != "auto":
        return EngineChoice(name, "asked for")
    reason = explain_choice(name, able, setting, platform=platform, devices=devices)
    return EngineChoice(name, reason, is_fallback=name == "plain")


def list_engines(setting: Setting, *, platform: str, devices: int | None = None) -> list[str]:
    """The engines that can do it, installed or not, the fastest first: the fused loop, compiled programs, plain."""
    method, is_fast = setting.method, why_not_fast(setting) is None
    can_fuse = is_fast and why_not_fused(setting, platform=platform, devices=devices) is None
    can_compile = is_fast and why_not_compiled(method) is None
    able = {"numba": can_fuse, "xla": can_compile, "plain": why_not_plain(method) is None}
    return [name for name, is_able in able.items() if is_able]


def why_not_fused(setting: Setting, *, platform: str, devices: int | None) -> str | None:
    """What keeps a setting that has a fast twin out of the fused loop; None: nothing does."""
    method = setting.method
    if platform != "cpu":
        return f"device={platform}"
    if (devices or 1) != 1:
        return f"devices={devices}"
    if is_fusable(method):
        return None
    return f"server_optimiser={method.server_step.optimiser} in central training"


def explain_choice(name: str, able: list[str], setting: Setting, *, platform: str, devices: int | None) -> str:
    """Why this one, of those that can do it."""
    missing = [PACKAGES[faster] for faster in able[: able.index(name)]]
    if missing:
        advice = advise_install(EXTRAS[missing[0]])
        return f"{' and '.join(missing)} not installed, so a slower engine is used; for a faster one: {advice}"
    if name == "numba":
        return "the fastest for this ranker on a processor"
    if only_plain := why_not_fast(setting):
        return f"the fast engines do not do {only_plain}"
    obstacle = why_not_fused(setting, platform=platform, devices=devices)
    if name == "xla":
        return f"numba does not do {obstacle}"
    return f"{why_not_compiled(setting.method)} has no fast form but numba's, which does not do {obstacle}"


def explain_unable(engine: str, setting: Setting, *, platform: str, devices: int | None) -> str:
    """Why an engine cannot do it."""
    only_plain, only_fused = why_not_fast(setting), why_not_compiled(setting.method)
    if engine == "plain":
        reason = why_not_plain(setting.method)
        return f"the plain engine does not do {reason}: use server_optimiser=sgd or another engine."
    if only_plain:
        return f"engine={engine} does not do {only_plain}: leave --engine out, the plain engine does."
    if only_fused:
        return f"engine={engine} does not do {only_fused}: leave --engine out."
    obstacle = why_not_fused(setting, platform=platform, devices=devices)
    return f"engine=numba does not do {obstacle}: leave --engine out, or use --engine xla."
