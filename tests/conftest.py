"""What tests share: the processor as device, `tiny_settings.py`, whose few shapes keep compilation cheap, and seeds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from seeds import CHOSEN, find_run_seed

from hushrank.engine.device import spare_mappings

os.environ.setdefault("JAX_PLATFORMS", "cpu")
for place in (
    ".",
    "live",
    "live/queries",
):  # Why: test modules share tiny_settings.py and live_processes.py without a package
    sys.path.insert(0, str(Path(__file__).parent / place))

RUN_SEED = find_run_seed()
# Why: no clock decides, and nothing is remembered from run to run
UNTIMED = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("fixed", UNTIMED, derandomize=True)
settings.register_profile("fresh", UNTIMED)
settings.load_profile("fixed" if RUN_SEED is None else "fresh")
if RUN_SEED is None:  # Why: it would try the constants of whatever modules the tests before have loaded
    setattr(providers, "_get_local_constants", Constants)  # noqa: B010


@pytest.hookimpl(tryfirst=True)  # Why: before Hypothesis reads its option
def pytest_configure(config: pytest.Config) -> None:
    if RUN_SEED is not None:
        config.option.hypothesis_seed = RUN_SEED


def pytest_report_header() -> str | None:
    return None if RUN_SEED is None else f"fresh seeds: {CHOSEN}={RUN_SEED} repeats this run"


@pytest.hookimpl(tryfirst=True)  # Why: before tests are selected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("randomised")


@pytest.fixture(autouse=True)
def own_device(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's device keeps its ledger, in this process and in those it starts."""
    place = tmp_path_factory.mktemp("device")
    monkeypatch.setenv("HUSHRANK_DEVICE", str(place))
    return place


@pytest.fixture(autouse=True, scope="module")
def spared_mappings() -> Iterator[None]:
    """Tests of JAX functions compile more programs than one process may hold."""
    yield
    spare_mappings()


@pytest.fixture(autouse=True)
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of tests do not wait for a random moment of a round, unless a test says so."""
    if Path(__file__).parent / "live" in request.path.parents:
        monkeypatch.setattr("hushrank.live.device.service.SPREAD", 0.0)
