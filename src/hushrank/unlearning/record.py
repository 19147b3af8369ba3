"""The erasure record: who was forgotten, when, how, from which ranker to which, and what was measured. Signed.

It holds pseudonyms, digests, a method's name and figures, and nothing else fits into it: figures are single numbers
under short names, so that no query, document, click or update can stand there. A record says that whoever has the key
states this. It does not prove that the old ranker and its copies are gone.

The file is JSON with sorted keys, and the signature is over all fields but itself. A file with any other byte, a space
included, is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from hushrank.extras import require_package
from hushrank.files import Json, refuse_newer, write_bytes
from hushrank.types import NamedArrays
from hushrank.unlearning.signing_key import check_public, name_public

FORMAT, KIND = 1, "hushrank erasure record"
RESIDUES = {  # {name: what of a leaver may be left in the new ranker}
    "lengths": "The lengths of the other clients' updates were recorded while the leaver took part.",
    "start": "Training went on from a ranker that the leaver had helped to train.",
    "updates": "The other clients' updates were made from rankers that the leaver had helped to train.",
    "impressions": "The other clients' lists were shown by rankers that the leaver had helped to train.",
    "given": "Training began with a ranker that was given to the run, which the leaver may have helped to train.",
}
_EXACT = "The method is exact: nothing that the leaver did has entered the new ranker."
_APPROXIMATE = "The method is approximate."
_PROTOCOL, _PURPOSE = b"hushrank erasure record|", "signed by an account"
_MOST_BYTES = 1_000_000  # Why: the record of 10,000 leavers has a fifth
_LONGEST, _LARGEST = 1000, 1e300  # a statement, in characters; a figure
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_PSEUDONYM, _DIGEST, _SIGNATURE = (re.compile(f"[0-9a-f]{{{n}}}") for n in (16, 64, 128))
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_FIGURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9@/_.-]{0,59}")


class RecordError(ValueError):
    """A file that is no erasure record, or not one as it was signed. One line, for people."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is stated."""

    clients: tuple[str, ...]  # pseudonyms, `pseudonym`
    method: str
    residues: tuple[str, ...]  # names in RESIDUES: what of the leaver may be left; none: the method is exact
    old: str  # digest of the ranker before, `digest_rankers`
    new: str  # digest of the ranker after
    figures: Mapping[str, float | int | bool | None]  # of the verification; None: not measured


@dataclass(frozen=True, slots=True)
class CheckedRecord:
    """A record whose signature fits."""

    record: Json
    signer: str | None  # who has the key, in words; None: nobody has said so

    @property
    def sentence(self) -> str:
        """What was checked, and what was not."""
        key = self.record["public_key"]
        if self.signer is None:
            return (
                f"The record is as it was signed by the key {key}. Whose key that is was not checked: name the key "
                "that you expect."
            )
        return f"The record is as it was signed by {self.signer} ({key})."


def pseudonym(identity: str, client: int | str) -> str:
    """16 hex digits for a client of a run or federation, another in every one.

    Whoever knows the identity and can list all clients can find out who is meant: the owner of the record must.
    """
    if not identity:
        raise ValueError("the identity is empty: without it a client has the same pseudonym everywhere.")
    return hashlib.sha256(_canonical([identity, str(client)])).hexdigest()[:16]


def digest_rankers(rankers: NamedArrays) -> str:
    """64 hex digits of rankers by their names: equal digests, equal names, shapes, types and bits."""
    digest = hashlib.sha256()
    for name in sorted(rankers):
        array = np.ascontiguousarray(rankers[name])
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(_canonical([name, little.dtype.str, list(array.shape)]) + b"\n" + little.tobytes())
    return digest.hexdigest()


def build_record(erasure: Erasure, *, when: datetime) -> Json:
    """All fields but key and signature."""
    if when.tzinfo is None:
        raise ValueError("when has no time zone: pass datetime.now(UTC).")
    if unknown := set(erasure.residues) - set(RESIDUES):
        raise ValueError(f"{len(unknown)} residues are unknown, known are {', '.join(RESIDUES)}.")
    left = [sentence for name, sentence in RESIDUES.items() if name in erasure.residues]
    record = {
        "format": FORMAT,
        "kind": KIND,
        "clients": sorted(erasure.clients),
        "when": when.astimezone(UTC).strftime(_TIME),
        "method": erasure.method,
        "is_exact": not left,
        "from": erasure.old,
        "to": erasure.new,
        "verification": dict(erasure.figures),
        "statement": " ".join([_APPROXIMATE, *left]) if left else _EXACT,
    }
    for name, problem in _find_problems(record, [name for name in _CHECKS if name in record]):
        raise ValueError(f"{name} of an erasure record {problem}.")
    return record


def sign_record(record: Json, secret: bytes) -> Json:
    """The record with the public key and the signature of its owner."""
    require_package("cryptography")
    from hushrank.privacy.identities import sign

    named = {**record, "public_key": name_public(secret)}
    return {**named, "signature": sign(secret, _PURPOSE, _canonical(named), protocol=_PROTOCOL).hex()}


def write_record(path: Path, record: Json) -> None:
    """A signed record, whole or not at all."""
    write_bytes(path, _lay_out(record))


def verify_record(path: Path, *, key: str | None = None, own: str | None = None) -> CheckedRecord:
    """The record of a file, if it is as it was signed.

    key: the public key that must have signed it. own: that of this account (`signing_key.read_public`), which is named
    if it has.
    """
    require_package("cryptography")
    from hushrank.privacy.identities import is_signed

    expected = None if key is None else check_public(key)
    record, content = read_record(path)
    public, signature = record["public_key"], record["signature"]
    unsigned = {name: value for name, value in record.items() if name != "signature"}
    message, proof = _canonical(unsigned), bytes.fromhex(signature)
    if not is_signed(bytes.fromhex(public), _PURPOSE, message, proof, protocol=_PROTOCOL):
        raise RecordError(f"{path}: the signature does not fit. The record was changed after it was signed.")
    if content != _lay_out(record):
        raise RecordError(
            f"{path}: the signature fits the fields, but the file is not as it was written. Ask for an exact copy."
        )
    if expected is not None and public != expected:
        raise RecordError(f"{path} was signed by another key: {public}, not {expected}.")
    signer = "the owner of the key that you named" if expected is not None else None
    return CheckedRecord(record, "this account" if public == own else signer)


def read_record(path: Path) -> tuple[Json, bytes]:
    """The fields of a file, each of its kind, and the file's bytes. The signature is not checked."""
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    try:
        record = json.loads(content) if len(content) <= _MOST_BYTES else None
    except (ValueError, RecursionError):  # Why from None: the decoder's error holds the text
        raise RecordError(f"{path} is not JSON: it is no erasure record, or it was damaged.") from None
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise RecordError(f"{path} is no erasure record: its kind is not {KIND!r}.")
    if isinstance(record.get("format"), int):
        refuse_newer(path, record["format"], FORMAT)
    missing = [name for name in _CHECKS if name not in record]
    if missing:
        raise RecordError(f"{path} lacks {', '.join(missing)}: it is no whole erasure record.")
    if len(record) > len(_CHECKS):
        raise RecordError(f"{path} has fields that no erasure record of format {FORMAT} has: it was changed.")
    for name, problem in _find_problems(record, _CHECKS):
        raise RecordError(f"{path}: {name} {problem}. The record was changed or damaged.")
    return record, content


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _lay_out(record: Json) -> bytes:
    return json.dumps(record, sort_keys=True, indent=2, allow_nan=False).encode() + b"\n"


def _find_problems(record: Mapping[str, object], names: Iterable[str]) -> Iterable[tuple[str, str]]:
    """(field, what is wrong with it); what the field holds is not repeated."""
    for name in names:
        is_right, problem = _CHECKS[name]
        if not is_right(record[name]):
            yield name, problem


def _matches(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _are_clients(value: object) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(map(_matches(_PSEUDONYM), value)):
        return False
    return len(value) > 0 and list(value) == sorted(set(value))


def _are_figures(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        _matches(_FIGURE)(name) and (number is None or _is_number(number)) for name, number in value.items()
    )


def _is_number(value: object) -> bool:
    return isinstance(value, bool | int | float) and -_LARGEST < value < _LARGEST


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.strptime(value, _TIME).strftime(_TIME) == value
    except ValueError:
        return False


def _is_statement(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and 0 < len(value) <= _LONGEST


# {field: (whether a value is right, what is said where it is not)}
_CHECKS: dict[str, tuple[Callable[[object], bool], str]] = {
    "format": (lambda value: type(value) is int and value == FORMAT, f"is not {FORMAT}"),
    "kind": (lambda value: value == KIND, f"is not {KIND!r}"),
    "clients": (_are_clients, "must be different pseudonyms of 16 hex digits, at least one, in order"),
    "when": (_is_time, "must be a time such as 2026-01-31T12:00:00Z"),
    "method": (_matches(_NAME), "must be a method's name: small letters, digits and dashes"),
    "is_exact": (lambda value: isinstance(value, bool), "must be true or false"),
    "from": (_matches(_DIGEST), "must be a ranker's digest of 64 hex digits"),
    "to": (_matches(_DIGEST), "must be a ranker's digest of 64 hex digits"),
    "verification": (_are_figures, "must be finite numbers, or null, under short names"),
    "statement": (_is_statement, "must be a line of text"),
    "public_key": (_matches(_DIGEST), "must be 64 hex digits"),
    "signature": (_matches(_SIGNATURE), "must be 128 hex digits"),
}
