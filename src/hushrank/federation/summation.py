"""How a round's updates are added up, and what the server sees of it: each of them, or their sum alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from hushrank.federation.round import Federation
from hushrank.privacy.protection import Protection
from hushrank.privacy.sum_format import SumFormat


class Summation(ABC):
    """Between what clients send and what the server combines."""

    __slots__ = ()
    name: ClassVar[str]  # under which the engines keep what belongs to it
    is_secure: ClassVar[bool]  # whether the server sees only sums
    package: ClassVar[str | None] = None  # that must be installed for it

    @property
    @abstractmethod
    def format(self) -> SumFormat | None:
        """The whole numbers in which updates are added; None: they are added as they are."""

    @abstractmethod
    def equip(self, federation: Federation, protection: Protection) -> Federation:
        """The federation, protected already, whose server adds up like this."""

    @abstractmethod
    def count_bytes(self, message: int, *, n_clients: int, n_params: int) -> int:
        """What a client sends in a round; message: bytes of its update alone."""


@dataclass(frozen=True, slots=True)
class OpenSum(Summation):
    """The server sees every update and adds them itself."""

    name: ClassVar[str] = "open"
    is_secure: ClassVar[bool] = False

    @property
    def format(self) -> None:
        return None

    def equip(self, federation: Federation, protection: Protection) -> Federation:
        del protection
        return federation

    def count_bytes(self, message: int, *, n_clients: int, n_params: int) -> int:
        del n_clients, n_params
        return message


@dataclass(frozen=True, slots=True)
class MaskedSum(Summation):
    """The protocol of `privacy/secure_sum.py`: the server learns the sum and who took part."""

    name: ClassVar[str] = "masked"
    is_secure: ClassVar[bool] = True
    package: ClassVar[str | None] = "cryptography"

    format: SumFormat

    def equip(self, federation: Federation, protection: Protection) -> Federation:
        from hushrank.federation.secure_mean import hide_updates  # Why here: needs the package cryptography

        return hide_updates(federation, protection, self.format)

    def count_bytes(self, message: int, *, n_clients: int, n_params: int) -> int:
        """All messages of the protocol, in which the update is one of many."""
        from hushrank.privacy.secure_messages import count_sent_bytes  # Why here: needs the package cryptography

        del message
        return count_sent_bytes(n_clients, n_params + 1)
