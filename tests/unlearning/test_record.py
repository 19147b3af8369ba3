"""An erasure record says what was done, nothing about the leaver's data, and notices every changed byte."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted_data import CLICKED, SHOWN, TERMS, WORDS, name_person, plant
from rooms import SOURCE
from secret_search import search_files

from hushrank.data.load import load_dataset
from hushrank.metrics.distances import compare_rankings
from hushrank.privacy.device_ledger import PLACE
from hushrank.unlearning.record import (
    RESIDUES,
    Erasure,
    RecordError,
    build_record,
    digest_rankers,
    pseudonym,
    sign_record,
    verify_record,
    write_record,
)
from hushrank.unlearning.signing_key import check_public, find_key, name_public, open_key, read_public

SECRET, OTHER = bytes(range(32)), bytes(range(1, 33))
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
ERASURE = Erasure(
    clients=(pseudonym("run", 3), pseudonym("run", 7)),
    method="eraser",
    residues=("lengths",),
    old=digest_rankers({"a/1/1": np.arange(3, dtype=np.float32)}),
    new=digest_rankers({"a/1/1": np.arange(3, dtype=np.float32) + 1}),
    figures={"offline/nDCG@10": 0.7125, "distance/rbo": 0.95, "rounds": 20, "membership/auc": None, "is_worse": False},
)


def signed(**changes: Any) -> dict[str, Any]:
    return sign_record(build_record(replace(ERASURE, **changes), when=NOON), SECRET)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "record.json"
    write_record(path, signed())
    return path


def test_a_record_says_who_when_how_and_what_is_left() -> None:
    record = signed()
    assert (record["format"], record["kind"], record["method"]) == (1, "hushrank erasure record", "eraser")
    assert record["when"] == "2026-01-31T12:00:00Z" and record["clients"] == sorted(ERASURE.clients)
    assert record["is_exact"] is False and RESIDUES["lengths"] in record["statement"]
    exact = signed(method="retrain", residues=())
    assert exact["is_exact"] is True and "exact" in exact["statement"]
    assert build_record(ERASURE, when=NOON.astimezone(timezone(timedelta(hours=5))))["when"] == record["when"]


def test_a_record_that_was_not_touched_is_confirmed_and_by_whom_only_if_that_is_known(path: Path) -> None:
    key = name_public(SECRET)
    unknown = verify_record(path)
    assert unknown.record["method"] == "eraser" and unknown.signer is None
    assert "Whose key that is was not checked" in unknown.sentence and key in unknown.sentence
    assert verify_record(path, own=key).signer == "this account"
    assert verify_record(path, own=name_public(OTHER)).signer is None
    assert verify_record(path, key=key.upper()).signer == "the owner of the key that you named"


def test_every_changed_byte_is_noticed(path: Path) -> None:
    content = path.read_bytes()
    for place in range(len(content)):
        for changed in (content[place] ^ 1, content[place] ^ 0x20):
            path.write_bytes(content[:place] + bytes([changed]) + content[place + 1 :])
            with pytest.raises(ValueError, match=r"record\.json"):
                verify_record(path)
    for other in (content + b"\n", content[:-1], content.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + content):
        path.write_bytes(other)
        with pytest.raises(RecordError, match="not as it was written"):
            verify_record(path)


def change(**fields: Any) -> Callable[[dict[str, Any]], bytes]:
    return lambda record: json.dumps({**record, **fields}, indent=2, sort_keys=True).encode() + b"\n"


def leave_out(name: str) -> Callable[[dict[str, Any]], bytes]:
    return lambda record: json.dumps({key: value for key, value in record.items() if key != name}).encode()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda _: b"all is forgotten", "is not JSON: it is no erasure record, or it was damaged"),
        (lambda _: b"\xff\xfe\x00", "is not JSON"),
        (lambda _: b"[" * 100_000, "is not JSON"),
        (lambda _: b"[1]", "is no erasure record: its kind is not 'hushrank erasure record'"),
        (lambda _: b" " * 1_000_001, "is no erasure record"),
        (change(kind="hushrank run"), "is no erasure record"),
        (change(format=2), r"was written by a newer hushrank \(format 2, this one reads 1\)"),
        (change(format="1"), "format is not 1"),
        (leave_out("method"), "lacks method: it is no whole erasure record"),
        (leave_out("signature"), "lacks signature"),
        (change(note="x"), "has fields that no erasure record of format 1 has"),
        (change(clients=[]), "clients must be different pseudonyms"),
        (change(when="yesterday"), "when must be a time"),
        (change(verification={"auc": float("nan")}), "verification must be finite numbers"),
        (change(verification={"auc": 10**400}), "verification must be finite numbers"),
        (change(verification={"updates": [0.1, 0.2]}), "verification must be finite numbers"),
        (change(public_key="ab"), "public_key must be 64 hex digits"),
        (change(signature="zz"), "signature must be 128 hex digits"),
        (change(is_exact=True), "the signature does not fit. The record was changed after it was signed"),
        (change(verification={"distance/rbo": 1}), "the signature does not fit"),
        (change(public_key=name_public(OTHER)), "the signature does not fit"),
        (change(public_key="f" * 64), "the signature does not fit"),
    ],
)
def test_bad_input_is_one_clear_line(path: Path, spoil: Callable[[dict[str, Any]], bytes], message: str) -> None:
    path.write_bytes(spoil(json.loads(path.read_bytes())))
    with pytest.raises(ValueError, match=message) as caught:
        verify_record(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_a_record_of_another_key_is_refused_where_a_key_was_named(path: Path) -> None:
    with pytest.raises(RecordError, match=f"was signed by another key: {name_public(SECRET)}"):
        verify_record(path, key=name_public(OTHER), own=name_public(SECRET))
    with pytest.raises(ValueError, match="a public key has 64 hex digits, this text has 5 characters"):
        verify_record(path, key="abcde")
    assert check_public(f" {name_public(OTHER).upper()}\n") == name_public(OTHER)


def test_a_signature_for_something_else_is_none_for_a_record(path: Path) -> None:
    from hushrank.privacy.identities import sign

    record = json.loads(path.read_bytes())
    unsigned = {name: value for name, value in record.items() if name != "signature"}
    message = json.dumps(unsigned, sort_keys=True, separators=(",", ":")).encode()
    path.write_bytes(change(signature=sign(SECRET, "signed by an account", message).hex())(record))
    with pytest.raises(RecordError, match="the signature does not fit"):
        verify_record(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": ()}, "clients of an erasure record must be different pseudonyms"),
        ({"clients": ("3",)}, "clients of an erasure record must be"),
        ({"clients": ERASURE.clients[:1] * 2}, "clients of an erasure record must be different"),
        ({"method": f"{TERMS[0]} {WORDS[0]}"}, "method of an erasure record must be a method's name"),
        ({"residues": (f"{TERMS[0]} {WORDS[0]}",)}, "1 residues are unknown, known are lengths, start"),
        ({"old": "fresh"}, "from of an erasure record must be a ranker's digest"),
        ({"figures": {f"{TERMS[0]} {WORDS[0]}": 1}}, "verification of an erasure record must be finite numbers"),
        ({"figures": {"clicked": list(CLICKED)}}, "verification of an erasure record must be"),
        ({"figures": {"shown": np.array(SHOWN)}}, "verification of an erasure record must be"),
        ({"figures": {"query": WORDS[0]}}, "verification of an erasure record must be"),
        ({"figures": {"auc": float("inf")}}, "verification of an erasure record must be finite"),
    ],
)
def test_what_does_not_belong_into_a_record_is_refused_and_not_repeated(changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        signed(**changes)
    assert WORDS[0] not in str(caught.value) and TERMS[0] not in str(caught.value)


def test_planted_secrets_are_not_in_a_record(tmp_path: Path) -> None:
    """A record about a person of the planted log, with figures measured on the planted queries."""
    planted = plant(tmp_path / "planted")
    test = load_dataset(planted.data).folds[0].test
    rankers = {"before": test.features.mean(axis=0), "after": test.features[0]}
    lists = compare_rankings(test, test.features @ rankers["after"], test.features @ rankers["before"])
    record = signed(
        clients=tuple(pseudonym("run", name_person(person)) for person in range(2)),
        old=digest_rankers({"navigational/1/1": rankers["before"]}),
        new=digest_rankers({"navigational/1/1": rankers["after"]}),
        figures={"distance/rbo": lists.rbo, "distance/tau": lists.tau},
    )
    (tmp_path / "out").mkdir()
    write_record(tmp_path / "out" / "record.json", record)
    assert search_files(tmp_path / "out", planted.secrets) == []
    (tmp_path / "out" / "leak.json").write_text(json.dumps({**record, "note": name_person(1)}))
    assert search_files(tmp_path / "out", planted.secrets) != []


def test_pseudonyms_differ_by_run_and_client() -> None:
    names = [pseudonym(run, client) for run in ("a", "b") for client in (1, 11, "x")]
    assert len(set(names)) == 6 and all(len(name) == 16 for name in names)
    assert pseudonym("a", 1) == pseudonym("a", "1") != pseudonym("a1", "")
    with pytest.raises(ValueError, match="the identity is empty"):
        pseudonym("", 1)


def test_digests_name_bits_shapes_types_and_names() -> None:
    params = np.array([1.5, -2.0], np.float32)
    variants: list[dict[str, Any]] = [
        {"a": params},
        {"b": params},
        {"a": np.array([1.5, 2.0], np.float32)},
        {"a": params.astype(np.float64)},
        {"a": params[:, None]},
        {"a": params, "b": params},
    ]
    assert len({digest_rankers(rankers) for rankers in variants}) == len(variants)
    same = {"b": params[::-1][::-1], "a": params.astype(">f4")}
    assert digest_rankers(same) == digest_rankers({"a": params, "b": params})


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLACE, str(tmp_path / "new" / "state"))
    path = find_key()
    assert path == tmp_path / "new" / "state" / "erasure.key" and read_public(path) is None and not path.exists()
    secret = open_key(path)
    assert len(secret) == 32 and open_key(path) == secret and read_public(path) == name_public(secret)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == [path.name]  # noqa: PTH208 - nothing unfinished is left
    path.write_bytes(b"")  # killed before the key was written
    assert read_public(path) is None and open_key(path) == open_key(path) != secret


@pytest.mark.parametrize("content", [b"abc", b"A" * 64 + b"\n", bytes(65), b"0" * 64 + b"\n\n"])
def test_a_damaged_key_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "erasure.key"
    path.write_bytes(content)
    for use in (open_key, read_public):
        with pytest.raises(ValueError, match=r"erasure\.key holds no signing key: it was damaged"):
            use(path)
    assert path.read_bytes() == content


def test_processes_that_come_first_together_get_the_same_key(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert len(set(pool.map(open_key, [tmp_path / "erasure.key"] * 8))) == 1


def test_without_cryptography_the_extra_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['cryptography'] = None; from pathlib import Path\n"
        "from hushrank.unlearning import record, signing_key\n"
        "for use in (lambda p: signing_key.open_key(p / 'k'), lambda p: record.verify_record(p / 'r')):\n"
        "    try: use(Path(sys.argv[1]) / 'new')\n"
        "    except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout.splitlines()
    assert len(said) == 2 and all("needs cryptography, which the extra 'lab' installs" in line for line in said)
    assert not list(tmp_path.iterdir())
