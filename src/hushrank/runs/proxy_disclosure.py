"""Who learns what in a training with proxies, layer by layer."""

from __future__ import annotations

from hushrank.engine.personal_proxies import ProxySetting
from hushrank.engine.personal_setting import PersonalSetting
from hushrank.federation.hierarchy import FEWEST
from hushrank.files import Json
from hushrank.personal.keys import NOTHING, UPPER, WHOLE
from hushrank.privacy.disclosure import STAYS, Disclosure

_HANDED = {
    WHOLE: "Stragglers hand their whole tasks to it: their logs, profiles and personal vectors.",
    UPPER: "Stragglers hand the upper layers to it. It sees the vectors of the words of each search that is trained "
    "on, which it can look up, and which documents were clicked; not the rest of the log, nor features. It gets how "
    "their lower layers changed as it is, outside any secure sum, and in every local step the squared length of their "
    "gradients.",
    NOTHING: "",
}
_GROUP = (
    "How many clients of each of its proxies wait, how many could be counted in each attempt, and after a quorum the "
    f"sum of each proxy's step: over at least {FEWEST} clients, without saying which. It tells about the words that "
    "these searched for."
)
_BEFORE_NOISE = "A client's proxy reads its update before there is any noise."


def name_reader(proxies: ProxySetting | None) -> str:
    """Who reads single updates, or the least that anybody reads."""
    if proxies is None:
        return "the server reads from every update which words its client searched for"
    if proxies.format is None:
        return "a proxy reads from every update which words its client searched for"
    return "a proxy reads from the sum of its clients' updates which words they searched for"


def hide_from_proxies(setting: PersonalSetting, proxies: ProxySetting) -> str:
    """From whom what a message tells is hidden."""
    if setting.exchange.protection.has_noise:
        return (
            "The proxy reads that, and the server reads the sum before it adds the noise, which hides it from others."
        )
    if proxies.format is None:
        return "The proxy reads that. Above it, only sums can be read, which no noise protects."
    but = " It does not hide a straggler's." if _hands_over(setting) else ""
    return f"A secure sum hides it from the proxy, which reads the sum of its clients.{but} No noise protects that sum."


def except_handed(setting: PersonalSetting) -> str:
    """Whose logs leave their devices all the same."""
    is_handed = setting.settings.stragglers > 0 and setting.settings.offload == WHOLE
    return " (a straggler's go to its proxy)" if is_handed else ""


def _hands_over(setting: PersonalSetting) -> bool:
    """Whether proxies train for stragglers."""
    return setting.settings.stragglers > 0 and setting.settings.offload != NOTHING


def _stays(setting: PersonalSetting) -> str:
    """Whether clients keep what they have."""
    return f"{STAYS}, but for stragglers, who hand tasks to their proxies" if _hands_over(setting) else STAYS


def describe_hierarchy(proxies: ProxySetting) -> Json:
    """For a run's JSON."""
    hierarchy = proxies.hierarchy
    return {
        "n_proxies": hierarchy.n_proxies,
        "n_groups": hierarchy.n_groups,
        "users_per_proxy": hierarchy.users_per_proxy,
        "proxies_per_group": hierarchy.proxies_per_group,
        "is_secure": proxies.format is not None,
        "sum_step": None if proxies.format is None else proxies.format.step,
    }


def disclose_proxies(setting: PersonalSetting, proxies: ProxySetting, flat: Disclosure) -> Disclosure:
    """flat: what would hold without proxies; what it says of everybody else still holds."""
    has_noise = setting.exchange.protection.has_noise
    seen = "every client's update as it is, and how many pairs are behind it"
    if proxies.format is not None:
        seen = "the sum of their updates in each step, and no single one of those who train on their own"
    handed = _HANDED[setting.settings.offload] if setting.settings.stragglers else ""
    proxy = f"Which of its users take part when, and {seen}. {handed}".rstrip()
    server = "How many clients wait below each group server, and the sum of each group server's step."
    server += " It adds the noise." if has_noise else " Sums carry no noise: the fewer clients, the more they say."
    others = tuple(line for line in flat.lines if line[0] != "the server")
    promise = f"No guarantee. {_stays(setting)}; a proxy sees its clients' updates, the server sums of them."
    if proxies.format is not None:
        but = ", and each straggler's" if _hands_over(setting) else ""
        promise = f"No guarantee in numbers. {_stays(setting)}; a proxy sees only the sum of its clients' updates{but}."
    if has_noise:
        promise = f"{flat.promise} {_BEFORE_NOISE} {handed}".rstrip()
    return Disclosure(promise, (("a proxy", proxy), ("a group server", _GROUP), ("the server", server), *others))
