"""How a server is run, as opposed to what its federation agreed on: `server.toml`, which may change between starts."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hushrank.live.server.rounds import RoundRules
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.protocol import MOST_WAIT_S
from hushrank.live.wire.terms import exchange_of

FILE = "server.toml"


def _key(default: Any, says: str) -> Any:
    return field(default=default, metadata={"says": says})


_ABOVE_ZERO = (
    *("deadline_s", "max_norm", "body_timeout_s"),
    *("requests_per_second", "burst", "requests_per_address", "connections"),
)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Every key of server.toml; None: the default that its comment names."""

    host: str = _key("127.0.0.1", "address to listen on; beyond this machine only with TLS or --behind-proxy")
    port: int = _key(8765, "0: any free one")
    tls_certificate: str | None = _key(None, "PEM file, relative to this directory; default: no TLS")
    tls_key: str | None = _key(None, "PEM file of its private key")
    cohort: int | None = _key(None, "clients asked in each round; default: all who are awake, or n_clients if agreed")
    quorum: int | None = _key(None, "fewest answers that make a ranker; default: as few as the agreement allows")
    min_clients: int | None = _key(
        None, "fewest awake clients with which a round opens; default: all (privacy=paper), half (sound) or 1"
    )
    deadline_s: float = _key(60.0, "seconds that a round stays open for those who have not answered")
    pause_s: float = _key(0.0, "seconds between two rounds")
    asleep_after_s: float = _key(120.0, "a client that has not called for so many seconds is not asked")
    max_norm: float = _key(100.0, "longest update that is taken where no clipping was agreed (privacy none, paper)")
    body_timeout_s: float = _key(10.0, "seconds in which a request's body must have arrived")
    requests_per_second: float = _key(300.0, "of one client, on average; also of one address without a credential")
    burst: int = _key(600, "requests at once")
    requests_per_address: float = _key(10_000.0, "per second of one address, before anything is looked up")
    connections: int = _key(10_000, "open at once; fewer where the system allows fewer")
    connections_per_address: int = _key(
        256, "open at once from one address beyond this machine; 0, and behind a proxy: any number"
    )
    keep_updates: bool = _key(False, "keep single updates for audits; otherwise they are wiped when their round ends")
    log_json: bool = _key(False, "one JSON object per event on stderr instead of lines for people")

    def __post_init__(self) -> None:
        for f in fields(self):
            _check_kind(f.name, getattr(self, f.name), str(f.type))
        if not 0 <= self.port < 65536:
            raise ValueError(f"port is {self.port}, must be from 0 to 65535.")
        for key in (
            "deadline_s",
            "max_norm",
            "body_timeout_s",
            "requests_per_second",
            "burst",
            "requests_per_address",
            "connections",
        ):
            if not 0 < getattr(self, key) < math.inf:
                raise ValueError(f"{key} is {getattr(self, key)}, must be > 0 and finite.")
        if self.connections_per_address < 0:
            raise ValueError(f"connections_per_address is {self.connections_per_address}, must be 0 or more.")
        if self.asleep_after_s <= MOST_WAIT_S:
            raise ValueError(
                f"asleep_after_s is {self.asleep_after_s:g}, must be above {MOST_WAIT_S}: a client that waits in a "
                "long poll is awake."
            )
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together: give both or none.")


KEYS = tuple(f.name for f in fields(ServerConfig))
_KINDS: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (float, int), "bool": (bool,)}


def _check_kind(key: str, value: object, kind: str) -> None:
    name, _, rest = kind.partition(" | ")
    right = isinstance(value, _KINDS[name]) and (name == "bool" or not isinstance(value, bool))
    if not (right or (rest == "None" and value is None)):
        raise ValueError(f"{key} is {value!r}, must be of kind {kind}.")


def make_config(values: Mapping[str, Any]) -> ServerConfig:
    for key in values:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(KEYS)}."
            raise ValueError(f"no key of a server is called {key!r}; {hint}")
    return ServerConfig(**values)


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
    for f in fields(config):
        value = getattr(config, f.name)
        lines += [
            "",
            f"# {f.metadata['says']}",
            f"{f.name} = {_as_toml(value)}" if value is not None else f"# {f.name} =",
        ]
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
    quorum, least = config.quorum, protection.quorum().least
    if quorum is not None and quorum < least:
        raise ValueError(f"quorum is {quorum}, but the agreement needs {least} answers: less noise would arrive.")
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
    )
