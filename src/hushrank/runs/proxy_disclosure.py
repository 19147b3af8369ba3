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
    "on, which it can look up, and which documents were clicked; not the rest of the log, nor features.",
    NOTHING: "",
}
_GROUP = (
    "How many clients of each of its proxies wait, and the sum of each proxy's step: over at least "
    f"{FEWEST} clients, without saying which."
)


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
    single = (
        "the server sees only sums of proxies"
        if proxies.format is None
        else "the server sees only sums of proxies, and a proxy only the sum of its clients"
    )
    promise = flat.promise if has_noise else f"No guarantee in numbers. {STAYS}; {single}."
    return Disclosure(promise, (("a proxy", proxy), ("a group server", _GROUP), ("the server", server), *others))
