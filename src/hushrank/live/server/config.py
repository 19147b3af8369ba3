"""How a server is run, as opposed to what its federation agreed on: `server.toml`, which may change between starts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushrank.aggregation.tolerance import check_assumed, check_defined
from hushrank.keys import Key, above_zero, at_least, check_values, hint_names, key, keys_of, read_value
from hushrank.live.server.rounds import RoundRules
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.protocol import DEFAULT_HOST, DEFAULT_PORT, MOST_WAIT_S
from hushrank.live.wire.terms import exchange_of, rule_of
from hushrank.privacy.named import MODES

FILE = "server.toml"


def _check_port(port: int) -> str | None:
    return None if 0 <= port < 65536 else "must be from 0 to 65535"


def _check_sleep(seconds: float) -> str | None:
    return (
        None if seconds > MOST_WAIT_S else f"must be above {MOST_WAIT_S}: a client that waits in a long poll is awake"
    )


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Every key of server.toml; None: the default that its comment names."""

    host: str = key(DEFAULT_HOST, "address to listen on; beyond this machine only with TLS or --behind-proxy")
    port: int = key(DEFAULT_PORT, "0: any free one", check=_check_port)
    tls_certificate: str | None = key(None, "PEM file, relative to this directory; default: no TLS")
    tls_key: str | None = key(None, "PEM file of its private key")
    cohort: int | None = key(None, "clients asked in each round; default: all who are awake, or n_clients if agreed")
    quorum: int | None = key(None, "fewest answers that make a ranker; default: as few as the agreement allows")
    min_clients: int | None = key(
        None, "fewest awake clients with which a round opens; default: all (privacy=paper), half (sound) or 1"
    )
    deadline_s: float = key(
        60.0, "most seconds that a round stays open for those who have not answered", check=above_zero
    )
    least_deadline_s: float = key(
        5.0, "fewest seconds that a round stays open when its clients usually answer fast", check=above_zero
    )
    pause_s: float = key(0.0, "seconds between two rounds")
    asleep_after_s: float = key(
        120.0, "a client that has not called for so many seconds is not asked", check=_check_sleep
    )
    max_norm: float = key(
        100.0, "longest update that is taken where no clipping was agreed (privacy none, paper)", check=above_zero
    )
    hold_back: bool = key(
        False, "abandon a round whose step is five times as long as usual (privacy none), at most three in a row"
    )
    body_timeout_s: float = key(10.0, "seconds in which a request's body must have arrived", check=above_zero)
    requests_per_second: float = key(
        300.0, "of one client, on average; also of one address without a credential", check=above_zero
    )
    burst: int = key(600, "requests at once", check=above_zero)
    requests_per_address: float = key(
        10_000.0, "per second of one address, before anything is looked up", check=above_zero
    )
    connections: int = key(10_000, "open at once; fewer where the system allows fewer", check=at_least(1))
    connections_per_address: int = key(
        256,
        "open at once, and new per second, from one address beyond this machine, without a credential; 0, and behind a "
        "proxy: any number",
        check=at_least(0),
    )
    forget_patience_s: float = key(
        3600.0, "seconds that sleeping clients are waited for, in all, while a client is forgotten", check=at_least(0)
    )
    forget_searches: int | None = key(
        None, "searches of a replayed round while a client is forgotten; default: 3 of 5", check=at_least(1)
    )
    forget_every: int = key(
        10, "rounds from one that is replayed to the next, where keep_every was not agreed", check=at_least(1)
    )
    keep_updates: bool = key(False, "keep single updates for audits; otherwise they are wiped when their round ends")
    log_json: bool = key(False, "one JSON object per event on stderr instead of lines for people")

    def __post_init__(self) -> None:
        check_values(keys_of(type(self)).values(), self)
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together: give both or none.")


KEYS: Mapping[str, Key] = keys_of(ServerConfig)


def make_config(values: Mapping[str, Any], *, none_unsets: bool = False) -> ServerConfig:
    """From a file or a command line. none_unsets: the word none takes an optional key back."""
    for name in values:
        if name not in KEYS:
            raise ValueError(f"no key of a server is called {name!r}; {hint_names(name, KEYS)}")
    return ServerConfig(
        **{name: read_value(KEYS[name], value, none_unsets=none_unsets) for name, value in values.items()}
    )


def read_config(directory: Path) -> ServerConfig:
    path = directory / FILE
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(
            f"{path} does not exist. Create a federation with: hushrank server init {directory}"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}.") from error
    try:
        return make_config(values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def write_config(config: ServerConfig, *, heading: str) -> str:
    """The text of server.toml: every key with what it means; what is left to its default is commented out."""
    lines = [f"# {line}" for line in heading.splitlines()]
    for name, declared in KEYS.items():
        value = getattr(config, name)
        lines += ["", f"# {declared.help}", f"{name} = {_as_toml(value)}" if value is not None else f"# {name} ="]
    return "\n".join(lines) + "\n"


def _as_toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)


def rules_of(agreement: Agreement, config: ServerConfig) -> RoundRules:
    """When rounds open and close; refuses a server that would break what was agreed."""
    protection, n_clients = exchange_of(agreement).protection, agreement.n_clients
    rule = rule_of(agreement)
    quorum, least = config.quorum, protection.quorum().raised(0 if rule is None else rule.n_needed).least
    if quorum is not None and quorum < least:
        why = "less noise would arrive" if rule is None else f"aggregation={rule.name} is not defined for fewer"
        raise ValueError(f"quorum is {quorum}, but the agreement needs {least} answers: {why}.")
    if rule is not None and config.cohort is not None:
        check_defined(rule, n_asked=config.cohort)
        check_assumed(rule.assumed_malicious, n_asked=config.cohort)
    if config.cohort is not None and n_clients is not None and config.cohort != n_clients:
        raise ValueError(f"cohort is {config.cohort}, but the agreement says n_clients={n_clients}: leave cohort out.")
    return RoundRules(
        quorum=least if quorum is None else quorum,
        min_clients=config.min_clients if config.min_clients is not None else protection.fewest_awake(n_clients),
        cohort=config.cohort if config.cohort is not None else n_clients,
        deadline_s=config.deadline_s,
        pause_s=config.pause_s,
        asleep_after_s=config.asleep_after_s,
        rounds=agreement.rounds,
        separation=agreement.separation or 1,
        least_deadline_s=config.least_deadline_s,
        counts_replays=MODES[agreement.privacy].is_accounted,
    )
