"""Encrypted connections of strangers: few at once, because each costs many kilobytes from its first word on.

A connection takes a place before anything is made for its handshake, and gives it up when it has shown a credential or
has ended. Where all places are taken, the one whose other side has been silent for longest makes room. While nobody has
been silent for long enough, as when all clients come at once, newcomers wait in order. Few handshakes begin in one turn
of the event loop, because each costs half a millisecond in which nobody else is heard, and few may wait: where they do,
`TlsListener` takes no more connections.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

_MOST = 256  # Why: with what has made room and is not gone yet, they cost at most 60 MB
_CHANCE_S = 0.25  # that each has, however many wait; Why: a handshake takes one journey there and back
_LEAST_CHANCE_S = 0.02  # while nearly nobody uses it, as in a flood
_LOOK_AGAIN_S = 0.02
_AT_A_TURN = 1  # handshakes that begin in one turn of the event loop
_MOST_WAITING = 32  # that have said something; Why: whoever waits here has nobody before him in the system
_UNREAD_S = 1.0  # after a handshake; Why: who reads no answers is not read of, and could stay for ever
_REMEMBERED = 256  # of the last who had a place, whether they had to make room


@dataclass(slots=True)
class _Place:
    since: float  # it was taken, or the handshake was over
    socket: socket.socket
    end: Callable[[], None]
    is_shaken: bool = False

    def is_idle(self, now: float) -> bool:
        """Whether the other side has to do something: nothing that it sent waits for this server."""
        if self.is_shaken and now - self.since > _UNREAD_S:
            return True
        try:
            return not self.socket.recv(1, socket.MSG_PEEK)
        except OSError:
            return True


class TlsStrangers:
    """The places, and who waits for one."""

    def __init__(self, most: int = _MOST) -> None:
        self.most = most
        self._places: dict[object, _Place] = {}  # oldest first
        self._waiting: dict[object, tuple[socket.socket, Callable[[], None], Callable[[], None]]] = {}
        self.on_room: Callable[[], None] | None = None  # called when it is not, or no longer, busy
        self._is_due = False  # whether `_serve` is called in the next turn
        self._timer: asyncio.TimerHandle | None = None
        self._share_idle = 0.0  # of those who had a place lately, how many had to make room

    def enter(self, who: object, handshake: socket.socket, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """begin: called in a later turn, as soon as there is a place. end: makes room, and must lead to `leave`."""
        self._waiting[who] = (handshake, begin, end)
        self._serve_soon()

    def hand_over(self, old: object, new: object, end: Callable[[], None]) -> None:
        """The handshake is over, and the connection goes on as another object."""
        place = self._places.pop(old, None)
        if place is not None:
            self._places[new] = _Place(asyncio.get_running_loop().time(), place.socket, end, is_shaken=True)
            self._remember(is_idle=False)

    def leave(self, who: object) -> None:
        """Whoever has no place and waits for none may leave, too."""
        if self._waiting.pop(who, None) is not None or self._places.pop(who, None) is not None:
            self._serve_soon()

    @property
    def is_busy(self) -> bool:
        """Whether so many wait that no more should come."""
        return len(self._waiting) >= _MOST_WAITING

    def _serve(self) -> None:
        """The next few, in order."""
        self._is_due = False
        for who in tuple(islice(self._waiting, _AT_A_TURN)):
            if len(self._places) >= self.most and not self._make_room():
                self._look_again()
                break
            handshake, begin, end = self._waiting.pop(who)
            self._places[who] = _Place(asyncio.get_running_loop().time(), handshake, end)
            begin()
        else:
            if self._waiting:
                self._serve_soon()
        if self.on_room is not None and not self.is_busy:
            self.on_room()

    def _make_room(self) -> bool:
        now = asyncio.get_running_loop().time()
        chance = max(_CHANCE_S * (1 - self._share_idle), _LEAST_CHANCE_S)
        for place in self._places.values():
            if now - place.since < chance:
                return False
            if place.is_idle(now):
                place.end()
                self._remember(is_idle=True)
                return True
        return False

    def _remember(self, *, is_idle: bool) -> None:
        self._share_idle += (is_idle - self._share_idle) / _REMEMBERED

    def _serve_soon(self) -> None:
        """In the next turn of the loop."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._serve)

    def _look_again(self) -> None:
        """When somebody may have been silent for long enough."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_AGAIN_S, self._look)

    def _look(self) -> None:
        self._timer = None
        self._serve_soon()
