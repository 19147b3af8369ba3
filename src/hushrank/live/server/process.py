"""The server as a process: bound to its directory and its address, stopped gracefully."""

from __future__ import annotations

import gc
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette

from hushrank.live.server import store
from hushrank.live.server.config import ServerConfig, read_config
from hushrank.live.server.connections import MOST_PER_CLIENT, STRANGER_KEEP_ALIVE_S, ConnectionGuard
from hushrank.live.server.coordinator import Coordinator
from hushrank.live.server.creation import lock_federation, read_keys
from hushrank.live.server.erasures import make_signature
from hushrank.live.server.events import Tell
from hushrank.live.server.guarded import GuardedServer, guarded_protocol
from hushrank.live.server.routes import Application, make_app
from hushrank.live.server.tls_door import make_context
from hushrank.live.wire.addresses import is_loopback
from hushrank.live.wire.terms import guarantee_of

_BACKLOG = 2048
_SEND_BUFFER = 256 << 10  # Why: the system would keep up to 4 MB for each connection whose answers nobody reads
_KEEP_ALIVE_S = 120  # Why: longer than a long poll, so that a client's connection lives from one to the next
_GRACE_S = 10  # for requests under way when the server stops
_MANY_FILES = 65_536
_KEPT_FILES = 64  # descriptors that are not for connections: the store, its log, the listener
_SWITCH_S = 0.0005  # Why: closing a round asks for the interpreter at every row, and must not wait 5 ms each time


def serve(
    directory: Path,
    *,
    host: str | None = None,
    port: int | None = None,
    behind_proxy: bool = False,
    tell: Tell,
    watch: Callable[[Coordinator], None] = lambda _: None,
) -> None:
    """Until SIGTERM or Ctrl-C. watch: hears of the coordinator before anything happens."""
    config = read_config(directory)
    config = replace(config, host=host or config.host, port=config.port if port is None else port)
    check_listening(config, behind_proxy=behind_proxy)
    with lock_federation(directory):
        keys, engine = read_keys(directory), store.open_store(directory / store.FILE)
        sign = make_signature(directory)
        coordinator = Coordinator(engine, config, digest_key=keys.digest_key, tell=tell, sign=sign)
        watch(coordinator)
        app = make_app(coordinator, config, operator_token=keys.operator_token)
        with bind(config) as listener:
            tell_beginning(coordinator, config, listener, tell)
            allow_many_files()
            sys.setswitchinterval(_SWITCH_S)
            gc.freeze()  # Why: what is there now stays, and need not be looked through again and again
            run_app(app, coordinator, config, directory, listener, tell, behind_proxy=behind_proxy)
        engine.dispose()
        tell("stopped", accepted=coordinator.counters.n_accepted)


def check_listening(config: ServerConfig, *, behind_proxy: bool) -> None:
    """Credentials and updates never cross a network in the open."""
    if config.tls_certificate is None and not behind_proxy and not is_loopback(config.host):
        raise ValueError(
            f"host is {config.host}, which others can reach, but there is no TLS: give tls_certificate and tls_key in "
            "server.toml (hushrank server init --tls HOST makes them), or say --behind-proxy if a proxy adds TLS."
        )


@contextmanager
def bind(config: ServerConfig) -> Iterator[socket.socket]:
    """The socket to listen on; a port that is in use is said so."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        listener = socket.create_server((config.host, config.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        where = f"{config.host}:{config.port}"
        raise ValueError(f"cannot listen on {where} ({error.strerror}): stop what does, or give --port.") from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)  # connections inherit it
        yield listener


def tell_beginning(coordinator: Coordinator, config: ServerConfig, listener: socket.socket, tell: Tell) -> None:
    agreement = coordinator.agreement
    scheme, host = "https" if config.tls_certificate else "http", config.host
    tell("listening", url=f"{scheme}://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}")
    tell(
        "federation",
        name=agreement.name,
        method=agreement.method,
        rounds=agreement.rounds,
        digest=agreement.digest,
        guarantee=guarantee_of(agreement),
        **coordinator.read_counts(),
    )


def run_app(
    app: Application,
    coordinator: Coordinator,
    config: ServerConfig,
    directory: Path,
    listener: socket.socket,
    tell: Tell,
    *,
    behind_proxy: bool,
) -> None:
    guard = make_guard(coordinator, config, tell, behind_proxy=behind_proxy)
    errors: list[BaseException] = []
    app.rest.router.lifespan_context = _remember_errors(app.rest.router.lifespan_context, errors)
    settings = uvicorn.Config(
        app,
        interface="asgi3",
        lifespan="on",
        ws="none",
        http=guarded_protocol(guard),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=behind_proxy,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
    context = None
    if config.tls_certificate is not None and config.tls_key is not None:
        context = make_context(directory / config.tls_certificate, directory / config.tls_key)
    server = _Server(settings, coordinator, guard, tell, context)
    with _heard_once(server):
        server.run(sockets=[listener])
    if errors:
        raise errors[0]


def make_guard(coordinator: Coordinator, config: ServerConfig, tell: Tell, *, behind_proxy: bool) -> ConnectionGuard:
    """Fewer connections than the system has descriptors, so that the store can always be opened."""
    most = config.connections if (n := count_descriptors()) is None else min(config.connections, n - _KEPT_FILES)
    guard = ConnectionGuard(
        max(most, 1),
        0 if behind_proxy else config.connections_per_address,
        config.body_timeout_s,
        tell,
        coordinator.now,
        coordinator.counters.dropped,
        most_per_client=0 if behind_proxy else MOST_PER_CLIENT,
        stranger_keep_alive_s=_KEEP_ALIVE_S if behind_proxy else STRANGER_KEEP_ALIVE_S,
    )
    coordinator.watch("connections", lambda: guard.n_open)
    return guard


class _Server(GuardedServer):
    """Tells the coordinator that it stops."""

    def __init__(
        self,
        config: uvicorn.Config,
        coordinator: Coordinator,
        guard: ConnectionGuard,
        tell: Tell,
        context: ssl.SSLContext | None,
    ) -> None:
        super().__init__(config, guard, context)
        self._coordinator, self._tell, self._is_told = coordinator, tell, False

    async def on_tick(self, counter: int) -> bool:
        if self.should_exit and not self._is_told:
            self._is_told = True
            self._tell("stopping")
            self._coordinator.begin_stop()
        return await super().on_tick(counter)


@contextmanager
def _heard_once(server: uvicorn.Server) -> Iterator[None]:
    """Signals that come before uvicorn listens to them stop it too; those that it raises once more when it is done are
    heard by nobody, so that the exit code is 0.
    """

    def stop(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _remember_errors(lifespan: Any, errors: list[BaseException]) -> Any:
    """Why: uvicorn only logs what goes wrong while the application starts."""

    @asynccontextmanager
    async def remembering(app: Starlette) -> AsyncIterator[None]:
        try:
            async with lifespan(app):
                yield
        except Exception as error:
            errors.append(error)
            raise

    return remembering


def allow_many_files() -> None:
    """As many connections as the system allows without asking."""
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, _MANY_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def count_descriptors() -> int | None:
    """Files and connections that this process may have open; None: the system does not say."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
