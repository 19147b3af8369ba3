"""The commands that take the numbers of the pages run, on small data, and write what the pages read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shown_blocks import ROOT

from benchmarks import as_published, methods, reconstruction

pytestmark = pytest.mark.slow


def keys(rows: list[dict[str, object]]) -> set[frozenset[str]]:
    return {frozenset(row) for row in rows}


def test_what_uploads_betray(tmp_path: Path) -> None:
    written, committed = tmp_path / "reconstruction.json", ROOT / "docs" / "benchmarks" / "reconstruction.json"
    assert reconstruction.main(["--data", "tiny", "--trials", "4", "--json", str(written)]) == 0
    found, known = (json.loads(path.read_text()) for path in (written, committed))
    assert found.keys() == known.keys()
    cases = [
        [(r["ranker"], r["mode"], r["label"], r["epsilon"], r["interactions"]) for r in d["rows"]]
        for d in (found, known)
    ]
    assert cases[0] == cases[1] and keys(found["rows"]) == keys(known["rows"])


@pytest.mark.parametrize("name", ["labels", "antithetic"])
def test_methods_beside_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(methods, "LOOKS", (0, 1))
    assert methods.main(["--data", "tiny", "--out", str(tmp_path), "--only", name]) == 0
    found, known = (
        json.loads((place / f"{name}.json").read_text()) for place in (tmp_path, ROOT / "docs" / "benchmarks")
    )
    assert found.keys() == known.keys() and keys(found["rows"]) == keys(known["rows"])
    assert {row.get("clicks", row.get("method")) for row in found["rows"]} == {
        row.get("clicks", row.get("method")) for row in known["rows"]
    }


def test_the_published_codes_variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_published, "ROUNDS", {"foltr-es": 20, "fpdgd": 2})
    parts = ["foltr-es", "fpdgd"]
    for name in parts:  # one after the other: the first part stays as it was
        assert as_published.main(["--data", "tiny", "--out", str(tmp_path), "--only", name]) == 0
    found, known = (
        json.loads((place / "as_published.json").read_text()) for place in (tmp_path, ROOT / "docs" / "benchmarks")
    )
    assert found.keys() == known.keys() and list(found["parts"]) == parts
    for name in parts:
        assert keys(found["parts"][name]) == keys(known["parts"][name])
        assert len(found["parts"][name]) == len(known["parts"][name])
