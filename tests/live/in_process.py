"""A federation in the test's own process: a coordinator without a network, and a file with clients."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from hushrank.live.server import store
from hushrank.live.server.clients import KnownClient
from hushrank.live.server.config import make_config
from hushrank.live.server.coordinator import Coordinator
from hushrank.live.server.creation import create_federation, read_keys
from hushrank.live.wire.agreement import Agreement, make_agreement
from hushrank.live.wire.credentials import make_secret
from hushrank.live.wire.protocol import UPDATE_PHASE
from hushrank.rankers.named import unpack_ranker

Story = Callable[["Live"], Awaitable[Any]]


class Live:
    """A coordinator with a clock that stands still until it is moved."""

    def __init__(self, directory: Path, config: dict[str, Any]) -> None:
        self.directory, self.now, self.said = directory, 1000.0, list[tuple[str, dict[str, Any]]]()
        self.tokens = (directory / "tokens.txt").read_text().split()
        self.engine = store.open_store(directory / store.FILE)
        self.c = Coordinator(
            self.engine,
            make_config(config),
            digest_key=read_keys(directory).digest_key,
            tell=lambda event, **facts: self.said.append((event, facts)),
            clock=lambda: self.now,
        )

    async def enrol(self, n: int = 1) -> list[KnownClient]:
        credentials = [make_secret() for _ in range(n)]
        for credential in credentials:
            await self.c.enrol(self.tokens.pop(), credential)
        await self.settle()
        return [self.c.identify(credential) for credential in credentials]

    async def settle(self) -> None:
        """Until nothing is under way."""
        for _ in range(3):
            await asyncio.sleep(0)
            await self.c.writer.write(lambda _: None)

    async def answer(self, client: KnownClient, *numbers: float, round: int | None = None) -> bool:
        body = np.array(numbers or (1, 2, 3), "<f4").tobytes()
        return await self.c.intake.take(client, round or self.c.rounds.number, UPDATE_PHASE, 1, body)

    async def move(self, seconds: float) -> None:
        self.now += seconds
        self.c._check_rounds()  # Why: its timer runs on the loop's own clock
        await self.settle()

    def params(self) -> list[float]:
        return [float(x) for x in unpack_ranker(self.c.published(None).content, name="it")[1]]


def agree(**settings: Any) -> Agreement:
    return make_agreement("library", n_features=3, **settings)


def play(directory: Path, story: Story, *, agreement: Agreement | None = None, **config: Any) -> Any:
    """A story in a federation, which is created first unless it is there; it stops afterwards."""
    if not directory.exists():
        create_federation(directory, agreement or agree(), make_config(config), n_tokens=20)

    async def tell() -> Any:
        live = Live(directory, config)
        await live.c.start()
        result = await story(live)
        await live.c.stop()
        live.engine.dispose()
        return result

    return asyncio.run(tell())


def enrol(connection: sa.Connection, n: int = 1) -> list[int]:
    """So many clients' numbers."""
    store.add_tokens(connection, [bytes([i]) for i in range(n)], expires_at=time.time() + 9)
    made = [store.enrol_client(connection, bytes([i]), bytes([100 + i]), now=time.time()) for i in range(n)]
    return [member.id for member in made]
