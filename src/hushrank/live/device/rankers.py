"""The ranker of a round, taken from a server that may send anything: checked before it is used or kept."""

from __future__ import annotations

import numpy as np

from hushrank.live.device.learning import Learning
from hushrank.live.device.membership import AgreementChangedError
from hushrank.live.device.store import KeptRanker
from hushrank.live.device.transport import Transport
from hushrank.live.wire.protocol import RANKER
from hushrank.live.wire.terms import count_params
from hushrank.live.wire.untrusted import MOST_NUMBER
from hushrank.rankers.named import unpack_ranker

MOST_PARAMETER = 1e6  # Why: far beyond what training gives, and scores of any features in sight stay finite
_MORE_BYTES = 1 << 16  # of a ranker's file, beside its numbers


class UnusableRankerError(ValueError):
    """The server sent something in the place of a ranker that no person should search with."""


def ask_ranker(transport: Transport, learning: Learning, round: int | None = None, *, path: str = RANKER) -> KeptRanker:
    """The ranker of a round; None: the newest there is. UnusableRankerError: it is not what was asked for. path: of
    rankers for people, or of candidates."""
    path = path if round is None else f"{path}?round={round}"
    most_bytes = 4 * count_params(learning.agreement) + _MORE_BYTES
    content = transport.call("GET", path, parse=lambda reply: reply.body, most_bytes=most_bytes)
    try:
        return read_ranker(content, learning, round)
    except AgreementChangedError:
        raise
    except ValueError as error:
        raise UnusableRankerError(str(error)) from error
    except Exception as error:  # Why: nothing that a server says may end a client with an error of ours
        raise UnusableRankerError(f"the server's ranker cannot be read ({type(error).__name__}).") from error


def read_ranker(content: bytes, learning: Learning, asked: int | None) -> KeptRanker:
    """One of the agreed kind, of the round that was asked for, with parameters that scores can be made of."""
    ranker, params, origin = unpack_ranker(content, name="the server's ranker")
    round = origin.get("round")
    if ranker != learning.ranker:
        raise ValueError("the server's ranker is of another kind than agreed.")
    if not isinstance(round, int) or isinstance(round, bool) or not 1 <= round <= MOST_NUMBER:
        raise ValueError("the server's ranker does not say of which round it is.")
    if asked is not None and round != asked:
        raise ValueError(f"the server's ranker is of round {round}, asked for was that of round {asked}.")
    if np.abs(params).max() > MOST_PARAMETER:
        raise ValueError(f"the server's ranker holds parameters beyond {MOST_PARAMETER:,.0f}.")
    if origin.get("agreement") != learning.agreement.digest:
        raise AgreementChangedError("the server's ranker belongs to another agreement than this client's. Start again.")
    return KeptRanker(round, params, None)
