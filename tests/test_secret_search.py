"""The search for planted secrets finds what is there, in every form, and nothing that is not."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import logging
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from secret_search import fraction_secret, row_secret, search_bytes, search_files, search_text, text_secret

QUERY = "zwölf&wölfe"
FEATURE = 0.73105857
CLICKS = [True, False, False, True, True, False, True, True]
SHOWN = [7, 3, 11, 0, 9, 2, 5, 10]
WRITTEN: dict[str, Callable[[str], str]] = {
    "raw": lambda text: f"query={text};",
    "raw, other case": str.upper,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64, 1 byte before": lambda text: base64.b64encode(b"q" + text.encode() + b"!").decode(),
    "base64, 2 bytes before": lambda text: base64.b64encode(b"q=" + text.encode() + b"?!").decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(b"{}" + text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "URL": lambda text: quote(text, safe=""),
    "JSON": json.dumps,
    "HTML": html.escape,
    "repr": ascii,
    "md5": lambda text: hashlib.md5(text.encode()).hexdigest(),
    "SHA1": lambda text: hashlib.sha1(text.encode()).hexdigest().upper(),
    "sha256": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "sha256, its beginning": lambda text: "id-" + hashlib.sha256(text.encode()).hexdigest()[:8],
    "sha256 in base64": lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode(),
    "cache key": lambda text: hashlib.blake2b(text.encode(), digest_size=20).hexdigest(),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_a_line_that_a_careless_logger_writes_is_found(tmp_path: Path, how: str) -> None:
    handler = logging.FileHandler(tmp_path / "debug.log", encoding="utf-8")
    logger = logging.Logger("careless", logging.DEBUG)
    logger.addHandler(handler)
    logger.debug("round 3: a client asked %s", WRITTEN[how](QUERY))
    handler.close()
    found = search_files(tmp_path, [text_secret(QUERY), text_secret("another query")])
    assert {(leak.secret, leak.where) for leak in found} == {(QUERY, "debug.log")}


@pytest.mark.parametrize("kind", ["<f", ">f", "<d", ">d"])
def test_a_number_is_found_among_others(kind: str) -> None:
    content = b"header" + struct.pack(kind, 0.5) + struct.pack(kind, FEATURE) + struct.pack(kind, 0.25)
    for written in (content, content.hex().encode(), json.dumps({"weights": [0.5, FEATURE]}).encode()):
        assert search_bytes(written, [fraction_secret(FEATURE)], where="checkpoint")
    assert not search_bytes(content, [fraction_secret(0.73105867)], where="checkpoint")


def test_a_number_is_found_in_the_digits_of_its_narrow_form() -> None:
    (narrow,) = struct.unpack("<f", struct.pack("<f", FEATURE))
    assert search_text(json.dumps(narrow), [fraction_secret(FEATURE)], where="metrics")
    assert search_text(f"{narrow:.7f}", [fraction_secret(FEATURE)], where="metrics")


def test_a_row_of_features_is_found_in_base64() -> None:
    for before in range(3):
        content = base64.b64encode(bytes(before) + struct.pack("<4f", 0.5, FEATURE, 0.26894143, 0.5))
        assert search_bytes(content, [fraction_secret(FEATURE, 0.26894143)], where="a page")


def test_rows_of_clicks_and_of_ranks_are_found() -> None:
    clicks, shown = row_secret("clicks", CLICKS), row_secret("shown", SHOWN)
    for content in (
        bytes(CLICKS),
        json.dumps(CLICKS).encode(),
        str(CLICKS).encode(),
        b"10011011",
        struct.pack("<8f", *CLICKS),
    ):
        assert [leak.secret for leak in search_bytes(content, [clicks, shown], where="")] == ["clicks"]
    for content in (*(struct.pack(f"<8{kind}", *SHOWN) for kind in "qifd"), json.dumps(SHOWN).encode()):
        assert [leak.secret for leak in search_bytes(content, [clicks, shown], where="")] == ["shown"]


def test_a_database_and_names_of_files_are_searched(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "server.db")
    database.execute("create table updates (client text, body blob)")
    database.execute("insert into updates values (?, ?)", ("u-grimaldi", struct.pack("<f", FEATURE)))
    database.commit()
    database.close()
    (tmp_path / "cornflower.txt").touch()
    found = search_files(tmp_path, [text_secret("u-grimaldi"), fraction_secret(FEATURE), text_secret("cornflower")])
    assert {leak.where for leak in found} == {"server.db", "the name of cornflower.txt"} and len(found) == 3


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_base64_is_found_wherever_it_stands(before: bytes, after: bytes) -> None:
    content = base64.b64encode(before + QUERY.encode() + after)
    assert search_bytes(content, [text_secret(QUERY)], where="")


def test_nothing_is_found_where_nothing_is() -> None:
    secrets = [text_secret(QUERY), fraction_secret(FEATURE), row_secret("clicks", CLICKS), row_secret("shown", SHOWN)]
    harmless = Path(__file__).with_name("conftest.py").read_bytes() + bytes(range(256)) * 64
    assert not search_bytes(harmless, secrets, where="")


def test_secrets_that_would_be_found_by_chance_are_refused() -> None:
    with pytest.raises(ValueError, match="a secret of 3 letters"):
        text_secret("cat")
    with pytest.raises(ValueError, match=r"plant numbers from \.1 to 1"):
        fraction_secret(3.0)
    with pytest.raises(ValueError, match="a row of 2"):
        row_secret("clicks", [True, False])
