"""What the tests of the data room share: a cache of their own, small files, the real MQ2008 where it is at hand."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]
_ARCHIVE = Path(__file__).parents[3] / "shared" / "data" / "MQ2008.tar.xz"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or fills the cache of the person who runs it."""
    root = tmp_path / "data-root"
    monkeypatch.setenv("HUSHRANK_DATA", str(root))
    return root


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write text or bytes to a file of the test's own directory."""

    def write_file(content: str | bytes, name: str = "file.txt") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture(scope="session")
def mq2008(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the real MQ2008."""
    if not _ARCHIVE.is_file():
        pytest.skip("the real MQ2008 is not beside the repository (../shared/data/MQ2008.tar.xz)")
    place = tmp_path_factory.mktemp("mq2008")
    with tarfile.open(_ARCHIVE) as archive:
        archive.extractall(place, filter="data")
    return place / "MQ2008"
