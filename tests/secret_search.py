"""Search for planted secrets in whatever a program leaves behind: files, databases, captured messages, log lines.

A secret is a text (a query, a document's id, a client's name) or a row of numbers (features, propensities, click
marks). A test plants some, lets everything run, and asks `search_files` and `search_bytes` where they are: as they are
or as programs write things down, in base64 at any place of a longer text, in hex, escaped, or hashed, also when only
the first eight digits of a hash were kept. What it cannot see: bytes that are compressed or encrypted (search before
that happens), a hash with salt, a text that was cut in two, and what merely *follows* from a secret, such as a sum of
features: `hushrank.leaks.reconstruction` measures how much that betrays.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus

import numpy as np

from hushrank.types import Array

_SHORTEST = {"text": 6, "base64": 8, "row": 8}  # Why: what is shorter is found by chance
_HASHES = ("md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b", "blake2s")
_KEPT = 8  # digits or bytes of a hash: programs often keep no more


@dataclass(frozen=True, slots=True)
class Form:
    """One way in which a secret may be written."""

    name: str
    content: bytes
    any_case: bool = False


@dataclass(frozen=True, slots=True)
class Secret:
    """What must not be found, and how it is called in a failing test."""

    name: str
    forms: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class Leak:
    """A secret that was found."""

    secret: str
    form: str
    where: str


def text_secret(text: str) -> Secret:
    """A text, in every form."""
    if len(text) < _SHORTEST["text"]:
        raise ValueError(f"a secret of {len(text)} letters is found by chance, plant at least {_SHORTEST['text']}.")
    raw = text.encode()
    plain = {"raw": text, "upper case": text.upper(), "lower case": text.lower()}
    plain |= {"JSON": json.dumps(text)[1:-1], "repr": ascii(text)[1:-1], "HTML": html.escape(text)}
    forms = [Form(name, written.encode(), any_case=True) for name, written in plain.items()]
    forms += [Form("utf-16", text.encode("utf-16-le")), *_escaped(text), *_encoded(raw)]
    for name in _HASHES:
        forms += _hashed(name, hashlib.new(name, raw).digest())
    short = hashlib.blake2b(raw, digest_size=20).digest()  # as the names of cache entries are made
    return Secret(text, (*_without_repeats(forms), *_hashed("blake2b-20", short)))


def fraction_secret(*values: float) -> Secret:
    """Numbers such as features or propensities, from .1 to 1: each as bytes of either width and order, and as digits.

    In base64 a float32 is found by chance: there, two or more that stand together are looked for as one piece.
    """
    if not all(0.1 <= value < 1 for value in values):
        raise ValueError(f"{values} came, plant numbers from .1 to 1: others are written in too many ways.")
    forms = []
    for kind in ("<f4", ">f4", "<f8", ">f8"):
        forms += [form for value in values for form in _in_memory(np.array([value]), kind)]
        forms += _in_memory(np.array(values), kind)
    for value in values:
        narrow = np.float32(value)
        for spelt in (repr(float(value)), str(narrow), repr(float(narrow))):
            forms.append(Form("digits", spelt[1 : 2 + _KEPT].encode()))  # the point, and what follows it
    return Secret(" ".join(map(repr, values)), tuple(_without_repeats(forms)))


def row_secret(name: str, values: Sequence[int] | Sequence[bool]) -> Secret:
    """Counts or marks that stand together, such as the ranks of a list or which of its documents were clicked."""
    if len(values) < _SHORTEST["row"]:
        raise ValueError(f"a row of {len(values)} is found by chance, plant at least {_SHORTEST['row']}.")
    row = np.array(values)
    are_marks = row.dtype.kind == "b"
    kinds = ("?",) if are_marks else ("<i8", "<i4", "<i2", "u1")
    forms = [form for kind in (*kinds, "<f4", "<f8") for form in _in_memory(row, kind)]
    for between in (", ", ",", " ", ""):
        forms.append(Form(f"text {between!r}", between.join(str(int(value)) for value in values).encode()))
        if are_marks:
            words = between.join(str(bool(value)) for value in values)
            forms.append(Form(f"words {between!r}", words.encode(), any_case=True))
    return Secret(name, tuple(_without_repeats(forms)))


def _in_memory(values: Array, kind: str) -> Iterator[Form]:
    raw = values.astype(kind).tobytes()
    yield Form(f"bytes {kind}", raw)
    yield from _encoded(raw, about=f" {kind}")


def search_bytes(content: bytes, secrets: Iterable[Secret], *, where: str) -> list[Leak]:
    """Every secret in these bytes."""
    lowered = content.lower()
    return [
        Leak(secret.name, form.name, where)
        for secret in secrets
        for form in secret.forms
        if (form.content.lower() in lowered if form.any_case else form.content in content)
    ]


def search_text(text: str, secrets: Iterable[Secret], *, where: str) -> list[Leak]:
    return search_bytes(text.encode("utf-8", "surrogateescape"), secrets, where=where)


def search_files(place: Path, secrets: Iterable[Secret]) -> list[Leak]:
    """Every secret in a file, or in the contents and names of all files below a directory."""
    known = tuple(secrets)
    leaks = []
    for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
        name = str(path.relative_to(place)) if path != place else path.name
        leaks += search_text(name, known, where=f"the name of {name}")
        leaks += search_bytes(path.read_bytes(), known, where=name) if path.is_file() else []
    return leaks


def _escaped(text: str) -> Iterator[Form]:
    raw = text.encode()
    yield Form("URL", quote(text, safe="").encode(), any_case=True)
    yield Form("URL, every letter", "".join(f"%{byte:02x}" for byte in raw).encode(), any_case=True)
    yield Form("form", quote_plus(text).encode(), any_case=True)


def _encoded(raw: bytes, *, about: str = "") -> Iterator[Form]:
    """In hex, and in base64 behind 0, 1 or 2 other bytes of the same group, in both alphabets."""
    yield Form(f"hex{about}", raw.hex().encode(), any_case=True)
    for n_before in range(3):
        for encode, alphabet in ((base64.b64encode, "base64"), (base64.urlsafe_b64encode, "base64url")):
            middle = _own_letters(encode(bytes(n_before) + raw), n_before, len(raw))
            if len(middle) >= _SHORTEST["base64"]:
                yield Form(f"{alphabet} after {n_before}{about}", middle)


def _own_letters(encoded: bytes, n_before: int, n_raw: int) -> bytes:
    """The letters that hold 6 bits of the secret each: none that depend on what stands before or behind it."""
    first = -(-8 * n_before // 6)
    return encoded[first : 8 * (n_before + n_raw) // 6]


def _hashed(name: str, digest: bytes) -> Iterator[Form]:
    yield Form(f"{name} hex", digest.hex()[:_KEPT].encode(), any_case=True)
    yield Form(f"{name} bytes", digest[:_KEPT])
    yield Form(f"{name} base64", base64.b64encode(digest)[:_KEPT])
    yield Form(f"{name} base64url", base64.urlsafe_b64encode(digest)[:_KEPT])


def _without_repeats(forms: Iterable[Form]) -> list[Form]:
    """The first form of those that look alike."""
    seen: dict[tuple[bytes, bool], Form] = {}
    for form in forms:
        seen.setdefault((form.content.lower() if form.any_case else form.content, form.any_case), form)
    return list(seen.values())
