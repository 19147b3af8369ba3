"""Which process of a client is at work: a home that was copied to a second machine is noticed, and one copy refused.

Each start of a client draws a random name, its instance, and sends it with long polls. A client that was started again
comes with a new one, and the old one never returns. Where it does, both are at work: the older is told so and ends,
instead of the two taking each other's place for ever. Kept in memory only: after a restart it is noticed again.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque

from hushrank.live.wire.refusals import Reason, RefusedError

_INSTANCE = re.compile(r"[0-9a-f]{16}")
_MOST_KNOWN = 100_000  # clients whose instances are remembered
_MOST_FORMER = 8  # instances of one client


class Instances:
    """The newest instance of each client, and those whose place it took."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, deque[str]] = OrderedDict()  # {client: its instances, the newest last}

    def meet(self, client: int, instance: str | None) -> None:
        """One that asks; refuse it if another has taken its place. None: a client that names none."""
        if instance is None:
            return
        if _INSTANCE.fullmatch(instance) is None:
            raise RefusedError(Reason.bad_request, "an instance is 16 hexadecimal digits.")
        known = self._known.setdefault(client, deque(maxlen=_MOST_FORMER + 1))
        self._known.move_to_end(client)
        if instance not in known:
            known.append(instance)
        elif self.is_former(client, instance):
            raise RefusedError(Reason.clone, "another process of this client was started after this one: stop one.")
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def is_former(self, client: int, instance: str | None) -> bool:
        """Whether another has taken the place of one that was met."""
        known = self._known.get(client)
        return instance is not None and known is not None and instance in known and instance != known[-1]
