"""A new federation on the disk: its configuration, keys, first tokens and store, all there or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from hushrank.live.server import config as server_config
from hushrank.live.server import store
from hushrank.live.server.certificate import write_certificate
from hushrank.live.server.config import ServerConfig, rules_of, write_config
from hushrank.live.server.new_ranker import first_ranker
from hushrank.live.wire.addresses import is_loopback
from hushrank.live.wire.agreement import KEYS as KEYS_OF_AGREEMENT
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.credentials import make_secret
from hushrank.live.wire.protocol import DEFAULT_HOST
from hushrank.live.wire.terms import guarantee_of, rule_of
from hushrank.locks import lock_directory
from hushrank.privacy.none import choose_norm

KEYS, TOKENS = "keys", "tokens.txt"
DAYS = 30  # that a token can be used, unless said otherwise
_CERTIFICATE, _PRIVATE = "tls-certificate.pem", "tls-key.pem"


@dataclass(frozen=True, slots=True)
class Keys:
    """The server's secrets."""

    digest_key: bytes  # of the digests by which a repeated update is known
    operator_token: str  # for /v1/metrics


def bound_influence(agreement: Agreement) -> Agreement:
    """With a norm that no client's update may exceed, where the agreement leaves it open and nothing else bounds it."""
    is_open = not agreement.is_evolution and agreement.privacy in KEYS_OF_AGREEMENT["update_norm"].only_for
    if not is_open or agreement.update_norm is not None:
        return agreement
    norm = choose_norm(learning_rate=agreement.learning_rate, interactions=agreement.interactions)
    return replace(agreement, update_norm=norm)


def create_federation(
    directory: Path, agreement: Agreement, config: ServerConfig, *, n_tokens: int, tls_hosts: Sequence[str] = ()
) -> None:
    """Everything in a new directory, which only its owner can read."""
    if directory.exists():
        raise ValueError(f"{directory} exists: a federation is created once. Name another directory, or remove it.")
    guarantee_of(agreement)  # refuses numbers that no mechanism can have
    rules_of(agreement, config)
    directory.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=directory.parent))
    try:
        if tls_hosts:
            write_certificate(unfinished / _CERTIFICATE, unfinished / _PRIVATE, tls_hosts)
            config = replace(config, tls_certificate=_CERTIFICATE, tls_key=_PRIVATE)
        write_secret(
            unfinished / KEYS, json.dumps({"digest_key": os.urandom(32).hex(), "operator_token": make_secret()})
        )
        store.create_store(unfinished / store.FILE, agreement, *first_ranker(agreement))
        write_secret(unfinished / TOKENS, "\n".join(make_tokens(unfinished, n_tokens)))
        (unfinished / server_config.FILE).write_text(
            write_config(config, heading=_heading(agreement)), encoding="utf-8"
        )
        unfinished.rename(directory)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def describe_rule(agreement: Agreement, config: ServerConfig) -> str | None:
    """What an operator should know of the aggregation rule; None: nothing."""
    rule, quorum = rule_of(agreement), rules_of(agreement, config).quorum
    if rule is None or quorum >= max(rule.n_proven, rule.n_judged):
        return None
    proven = f"is proven to work with {rule.assumed_malicious} malicious clients from {rule.n_proven} answers on"
    what, needed = proven, rule.n_proven
    if rule.n_judged > rule.n_proven:
        what, needed = f"judges nobody in a round of fewer than {rule.n_judged} answers", rule.n_judged
    return (
        f"aggregation={rule.name} {what}, and a round may close with {quorum}. To insist, set quorum = {needed} in "
        f"{server_config.FILE}."
    )


def choose_host(tls_hosts: Sequence[str]) -> str:
    """Where a server with a certificate for these names and addresses has to listen so that clients can reach it."""
    beyond = [host for host in tls_hosts if not is_loopback(host)]
    if not beyond:
        return DEFAULT_HOST
    return "::" if all(":" in host for host in beyond) else "0.0.0.0"


def describe_listening(config: ServerConfig) -> str:
    """`https://0.0.0.0:8765, on every address of this machine`"""
    scheme, host = "https" if config.tls_certificate else "http", config.host
    reach = "this machine only" if is_loopback(host) else "that address only"
    reach = "every address of this machine" if host in ("0.0.0.0", "::") else reach
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{config.port}, on {reach}"


def make_tokens(directory: Path, n: int, *, days: float = DAYS) -> list[str]:
    """New one-time tokens; a running server knows them at once."""
    if n < 1 or not days > 0:
        raise ValueError(f"{n} tokens for {days:g} days were asked for: both must be above 0.")
    tokens = [make_secret() for _ in range(n)]
    engine = store.open_store(directory / store.FILE, lock=lock_federation(directory))
    with engine.begin() as connection:
        hashes = (store.hash_secret(token) for token in tokens)
        store.add_tokens(connection, hashes, expires_at=time.time() + days * 86_400)
    engine.dispose()
    return tokens


def lock_federation(directory: Path) -> AbstractContextManager[None]:
    """One server at a time works in a federation's directory."""
    refusal = f"another server is at work in {directory}. Stop it, or name another directory."
    return lock_directory(directory, refusal=refusal)


def read_keys(directory: Path) -> Keys:
    path = directory / KEYS
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Keys(bytes.fromhex(found["digest_key"]), str(found["operator_token"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} does not hold the server's keys: it belongs to the directory as init wrote it."
        ) from error


def write_secret(path: Path, text: str) -> None:
    """A file that only its owner ever could read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())


def _heading(agreement: Agreement) -> str:
    return (
        f"How the server of the federation {agreement.name!r} is run. What its clients agreed on stays as it is in\n"
        f"{store.FILE} (hushrank server status --json shows it); what is here may change between two starts."
    )
