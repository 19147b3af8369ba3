"""A client's state in a secure sum on its disk, so that a restart can neither sign nor reveal a second time.

Two files in a folder: `state.json` is the state of the last step, with its secrets; `steps.json` says, for every
session, which state was the last. A step's state is on the disk before its message leaves. What follows:

- After a crash the client goes on from its last step. If the message of that step was not sent, it is not made again:
  to the others the client has fallen silent.
- An older copy of `state.json` is refused, and no session begins twice: `steps.json` knows better.
- Older copies of both files, or a clone of the whole folder, are not noticed. A client that goes on from them may sign
  twice, and then counts among those that collude with the server. Keep `steps.json` out of backups, or with the ledger.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from hushrank.files import Json, read_json, refuse_newer, write_bytes, write_json
from hushrank.privacy.secure_client import ClientState
from hushrank.privacy.secure_messages import Advert, SumConfig, SumPhase

STATE, STEPS = "state.json", "steps.json"
_FORMAT = 1


def encode_state(state: ClientState) -> bytes:
    """JSON, bytes as hexadecimal digits."""
    fields = {name: _to_json(value) for name, value in asdict(state).items()}
    fields |= {"format": _FORMAT, "adverts": [_to_json(asdict(a)) for a in state.adverts.values()]}
    return json.dumps(fields).encode()


def decode_state(content: bytes) -> ClientState:
    found: Json = json.loads(content)
    refuse_newer("the state of a secure sum", found["format"], _FORMAT)
    config = {**found["config"], "session": bytes.fromhex(found["config"]["session"])}
    adverts = [_read_advert(advert) for advert in found["adverts"]]
    return ClientState(
        config=SumConfig(**config),
        client_id=found["client_id"],
        phase=SumPhase(found["phase"]),
        entropy=bytes.fromhex(found["entropy"]),
        adverts={advert.client_id: advert for advert in adverts},
        digest=bytes.fromhex(found["digest"]),
        neighbours=tuple(found["neighbours"]),
        sharers=tuple(found["sharers"]),
        survivors=tuple(found["survivors"]),
        shares={int(i): (bytes.fromhex(b), bytes.fromhex(k)) for i, (b, k) in found["shares"].items()},
    )


def _read_advert(found: Json) -> Advert:
    names = ("sealing_key", "mask_key", "commitment", "signature")
    return Advert(found["client_id"], *(bytes.fromhex(found[name]) for name in names))


def _to_json(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): _to_json(each) for key, each in value.items()}
    return [_to_json(each) for each in value] if isinstance(value, tuple) else value


def keep_state(folder: Path, state: ClientState) -> None:
    """Write the state after a step; call it before the step's message leaves. Refuses a step back."""
    session, known = _name(state), _read_steps(folder)
    last = known.get(session)
    if (last is None) != (state.phase is SumPhase.SHARE) or (last is not None and state.phase <= last["phase"]):
        raise ValueError("this client has taken this step of the sum already, or none before it: nothing may be sent.")
    content = encode_state(state)
    step = {"phase": int(state.phase), "state": hashlib.sha256(content).hexdigest()}
    write_json(folder / STEPS, {"format": _FORMAT, "sessions": {**known, session: step}})  # Why first: see load_state
    write_bytes(folder / STATE, content)


def load_state(folder: Path) -> ClientState:
    """The state of the last step. Refused if `steps.json` names another: a copy is old, or a crash came in between."""
    content = (folder / STATE).read_bytes()
    state = decode_state(content)
    last = _read_steps(folder).get(_name(state))
    if last is None or last["state"] != hashlib.sha256(content).hexdigest():
        raise ValueError("the state of the secure sum is not the last one: this client takes no further part in it.")
    return state


def _name(state: ClientState) -> str:
    return state.config.session.hex()


def _read_steps(folder: Path) -> Json:
    """{session: {phase, state}}"""
    if not (folder / STEPS).exists():
        return {}
    found = read_json(folder / STEPS)
    refuse_newer(folder / STEPS, found["format"], _FORMAT)
    sessions: Json = found["sessions"]
    return sessions
