"""Encrypted connections of strangers: few at once, because each costs many kilobytes from its first word on.

A connection takes a place before anything is made for its handshake, and gives it up when it has shown a credential or
has ended. Where all places are taken, the one whose other side has been silent for longest makes room. While nobody has
been silent for long enough, as when all clients come at once, newcomers wait; the newest is served first, because in a
flood it is the one that still listens.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass

_MOST = 256  # Why: with what has made room and is not gone yet, they cost at most 60 MB
_CHANCE_S = 0.25  # that each has, however many wait; Why: a handshake takes one journey there and back
_LOOK_AGAIN_S = 0.02


@dataclass(slots=True)
class _Place:
    since: float
    handshake: socket.socket | None  # whose handshake is under way; None: it is over
    end: Callable[[], None]

    def is_idle(self) -> bool:
        """Whether the other side has to do something: nothing that it sent waits for this server."""
        if self.handshake is None:  # Why not asked then: who reads no answers is not read of, and could stay for ever
            return True
        try:
            return not self.handshake.recv(1, socket.MSG_PEEK)
        except OSError:
            return True


class TlsStrangers:
    """The places, and who waits for one."""

    def __init__(self, most: int = _MOST) -> None:
        self.most = most
        self._places: dict[object, _Place] = {}  # oldest first
        self._waiting: dict[object, tuple[socket.socket, Callable[[], None], Callable[[], None]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, who: object, handshake: socket.socket, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """begin: called as soon as there is a place, perhaps at once. end: makes room, and must lead to `leave`."""
        self._waiting[who] = (handshake, begin, end)
        self._serve()

    def hand_over(self, old: object, new: object, end: Callable[[], None]) -> None:
        """The handshake is over, and the connection goes on as another object."""
        place = self._places.pop(old, None)
        if place is not None:
            self._places[new] = _Place(place.since, None, end)

    def leave(self, who: object) -> None:
        """Whoever has no place and waits for none may leave, too."""
        self._waiting.pop(who, None)
        if self._places.pop(who, None) is not None and self._waiting:
            self._serve_later(0.0)

    def _serve(self) -> None:
        while self._waiting:
            if len(self._places) >= self.most and not self._make_room():
                self._serve_later(_LOOK_AGAIN_S)
                return
            who, (handshake, begin, end) = self._waiting.popitem()
            self._places[who] = _Place(asyncio.get_running_loop().time(), handshake, end)
            begin()

    def _make_room(self) -> bool:
        until = asyncio.get_running_loop().time() - _CHANCE_S
        for place in self._places.values():
            if place.since > until:
                return False
            if place.is_idle():
                place.end()
                return True
        return False

    def _serve_later(self, seconds: float) -> None:
        if self._timer is not None and seconds > 0:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._serve_now)

    def _serve_now(self) -> None:
        self._timer = None
        self._serve()
