"""The keys of recipe fedps: which model, who trains it and how, and how it is kept up to date."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hushrank.keys import above_zero, at_least, check_share, key, keys_of

PERSONAL_SEARCH = "fedps"  # the recipe that has these keys
ORIGINAL = "original"  # the model that changes nothing: the general engine's order
MODELS = (ORIGINAL, "knrm", "peps", "hrnn", "htps")
TOPOLOGIES = ("flat", "proxy", "central")
WHOLE, UPPER, NOTHING = "whole", "upper", "none"  # what a straggler hands to its proxy; see `offloading.py`
SPLIT = "peps"  # the model whose layers can be divided between two parties
GROUP_USER, COVER_QUERY = "group-user", "cover-query"  # how users hide; see `queries/ids.py`
UPDATINGS = ("once", "retrain", "continue", "online")
MOST_MEASURED = 5000  # users. Why: a look at 100,000 takes an hour, and 5,000 say as much
OF_PROXIES = ("users_per_proxy", "proxies_per_group", "clients_per_proxy", "offload", "proxy_dropout")
_ONLY = (PERSONAL_SEARCH,)
_OF_ORIGINAL = (
    "model",
    "topology",
    "updating",
    "stages",
    "measured_users",
)  # keys that say something where nothing is trained


def _check_parting(share: float) -> str | None:
    return check_share(share) or (None if share < 1 else "must be below 1: somebody has to answer")


@dataclass(frozen=True, kw_only=True)
class PersonalKeys:
    """Of recipes. None is the default that the help names, so that other recipes do not have these keys."""

    model: str | None = key(
        None,
        "fedps: peps (default), hrnn, htps, knrm (knows no user), or original: the engine's order, nothing is trained",
        choices=MODELS,
        only_for=_ONLY,
    )
    topology: str | None = key(
        None,
        "fedps: flat (default, clients and one server), proxy (proxies between them), or central (one has all logs)",
        choices=TOPOLOGIES,
        only_for=_ONLY,
    )
    epochs: int | None = key(
        None, "fedps: times that a client goes over its searches at a visit; default 1", check=at_least(1)
    )
    local_batch: int | None = key(
        None, "fedps: searches of one local step; default 16, the 64 pairs of the paper", check=at_least(1)
    )
    local_rate: float | None = key(None, "fedps: rate of a client's Adam; default .001", check=above_zero)
    word_vectors: str | None = key(
        None,
        "fedps: global word vectors are frozen (default, Case 3), frequent words are trained (Case 2), or all (Case 1)",
        choices=("frozen", "frequent", "all"),
        only_for=_ONLY,
    )
    word_dim: int | None = key(
        None,
        "fedps: numbers of a word vector; a model's other sizes follow; default 32 (the paper has 100)",
        check=at_least(2),
    )
    updating: str | None = key(
        None,
        "fedps: train once (default); or every week: retrain from scratch, continue on the week's data, or online",
        choices=UPDATINGS,
        only_for=_ONLY,
    )
    stages: int | None = key(
        None, "fedps: weeks that updating goes over, the last one to measure only; default 8", check=at_least(2)
    )
    stragglers: float | None = key(
        None, "fedps: share of clients that always miss the deadline; default 0", check=_check_parting
    )
    users_per_proxy: int | None = key(
        None, "fedps, topology=proxy: users below a proxy; default 100", check=at_least(2)
    )
    proxies_per_group: int | None = key(
        None, "fedps, topology=proxy: proxies below a group server; default 1,000", check=at_least(1)
    )
    clients_per_proxy: int | None = key(
        None, "fedps, topology=proxy: clients that a proxy picks in a step; default 10", check=at_least(2)
    )
    offload: str | None = key(
        None,
        "fedps, topology=proxy: what stragglers hand to their proxy: the whole task (default), the upper layers (model "
        "peps alone), none",
        choices=(WHOLE, UPPER, NOTHING),
        only_for=_ONLY,
    )
    proxy_dropout: float | None = key(
        None, "fedps, topology=proxy: probability that a proxy vanishes in a step; default 0", check=_check_parting
    )
    measured_users: int | None = key(
        None,
        f"fedps: users on whose searches a model is measured, drawn by the seed; default all up to {MOST_MEASURED:,}",
        check=at_least(1),
    )
    hidden_by: str | None = key(
        None,
        "fedps, topology=central: how users hide in the logs: group-user (100 share an id) or cover-query (false "
        "queries among theirs); default: not at all",
        choices=(GROUP_USER, COVER_QUERY),
        only_for=_ONLY,
    )


@dataclass(frozen=True, slots=True)
class PersonalSettings:
    """The same with every default filled in."""

    model: str = "peps"
    topology: str = "flat"
    epochs: int = 1
    local_batch: int = 16
    local_rate: float = 1e-3
    word_vectors: str = "frozen"
    word_dim: int = 32
    updating: str = "once"
    stages: int = 8
    stragglers: float = 0.0
    users_per_proxy: int = 100
    proxies_per_group: int = 1000
    clients_per_proxy: int = 10
    offload: str = WHOLE
    proxy_dropout: float = 0.0
    measured_users: int = MOST_MEASURED
    hidden_by: str | None = None

    @property
    def is_central(self) -> bool:
        return self.topology == "central" or not self.is_trained

    @property
    def has_proxies(self) -> bool:
        return self.topology == "proxy" and self.is_trained

    @property
    def is_trained(self) -> bool:
        return self.model != ORIGINAL

    @property
    def is_staged(self) -> bool:
        return self.updating != "once"

    @property
    def n_trainings(self) -> int:
        """How often training begins: the last stage has nothing after it to be measured on."""
        return self.stages - 1 if self.is_staged else 1


def settings_of(keys: PersonalKeys) -> PersonalSettings:
    given = {name: getattr(keys, name) for name in keys_of(PersonalKeys)}
    return PersonalSettings(**{name: value for name, value in given.items() if value is not None})


def check_no_personal(keys: PersonalKeys, *, method: str) -> None:
    """Refuse the keys of personalised search in another method."""
    given = [name for name in keys_of(PersonalKeys) if getattr(keys, name) is not None]
    if given:
        raise ValueError(f"{given[0]} is for recipe {PERSONAL_SEARCH}; {method} does not have it.")


def check_personal(keys: PersonalKeys, special: Collection[str]) -> None:
    """What cannot go together among these keys; special: those that somebody chose."""
    settings = settings_of(keys)
    of_proxies = [name for name in OF_PROXIES if getattr(keys, name) is not None]
    if of_proxies and settings.topology != "proxy":
        raise ValueError(f"{of_proxies[0]} is for topology=proxy; here topology is {settings.topology}.")
    if settings.hidden_by is not None and settings.topology != "central":
        raise ValueError(
            f"hidden_by={settings.hidden_by} hides users from one place that has all logs; here topology is "
            f"{settings.topology}, and logs stay with their users: set topology=central, or leave hidden_by out."
        )
    if keys.offload is not None and not settings.stragglers:
        raise ValueError("offload says what stragglers hand to their proxy, and there are none: set stragglers.")
    if keys.stages is not None and not settings.is_staged:
        raise ValueError("stages is for updating=retrain, continue or online: name one of them, or leave stages out.")
    if settings.is_central and settings.updating == "online":
        raise ValueError(
            "updating=online waits for clients, and there are none: use topology=flat, retrain or continue."
        )
    of_training = [name for name in keys_of(PersonalKeys) if name not in _OF_ORIGINAL and name in special]
    if not settings.is_trained and of_training:
        raise ValueError(
            f"{of_training[0]} is for a model that is trained; model={ORIGINAL} is the engine's own order."
        )
    of_clients = [name for name in ("epochs", "stragglers") if name in special]
    if settings.is_central and of_clients:
        raise ValueError(f"{of_clients[0]} is for topology=flat: central training has no clients to visit.")
    if settings.offload == UPPER and settings.model != SPLIT:
        raise ValueError(
            f"offload={UPPER} divides the layers of a model between a straggler and its proxy, and only those of "
            f"{SPLIT} can be divided; here model is {settings.model}. Set model={SPLIT}, or offload={WHOLE} or "
            f"{NOTHING}."
        )
