"""A federation of real processes ends with the ranker of the simulator.

The plain engine does the same operations on the same numbers: on one machine the two are equal to the last bit. The
margin is for machines on which a copied list of documents is aligned differently and its float32 products are added in
another order. The fast engines are equal to rounding, as they are to the plain one (tests/engine/test_twins.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_processes import create_federation, finish, serving, start_person

from hushrank.engine.simulate import Options, simulate
from hushrank.recipes.files import find_recipe
from hushrank.recipes.recipe import change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.types import Array

N_FEATURES = 8  # of the shape `tiny`
PLAIN_MARGIN, FAST_MARGIN = 1e-6, 1e-5  # of the largest weight
# {name: (recipe, what its agreement and the recipe both set, engines that draw the same noise)}
CASES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "fpdgd": ("fpdgd", {}, ("plain", "numba", "xla")),
    "network and momentum": (
        "fpdgd",
        {"ranker": "mlp", "hidden": 4, "server_optimiser": "momentum", "server_rate": 0.5},
        ("plain", "xla"),
    ),
    "paper": ("fpdgd", {"privacy": "paper", "epsilon": 4.5}, ("plain",)),  # fast engines draw the shares' sum at once
    "sound": ("fpdgd", {"privacy": "sound", "noise_multiplier": 1.5, "clip_norm": 0.1}, ("plain", "numba", "xla")),
    "median": ("fpdgd", {"aggregation": "median"}, ("plain", "numba", "xla")),
    "multi-krum": ("fpdgd", {"aggregation": "multi-krum", "assumed_malicious": 2}, ("plain", "numba", "xla")),
    "watchful": ("fpdgd", {"aggregation": "watchful"}, ("plain", "numba", "xla")),
    "foltr-es": ("foltr-es", {"p": 0.9}, ("plain", "numba", "xla")),
}


def live_ranker(place: Path, name: str, *, n_clients: int, rounds: int, first: tuple[str, ...] = ()) -> Array:
    """[n_params] after all rounds of a server and as many client processes; first: further words for the first one."""
    method, chosen, _ = CASES[name]
    agreed = {**chosen, "rounds": rounds, "min_clients": n_clients, "least_deadline_s": 60}  # nobody is ever late
    if "privacy" in chosen:
        agreed["n_clients"] = n_clients
    words = ("--method", method, "--features", N_FEATURES, "--simulate", "--seed", 5, "--tokens", n_clients)
    create_federation(place / "server", *words, **agreed)
    with serving(place / "server") as server:
        people = [start_person(server, place / "people", i, *(() if i else first)) for i in range(n_clients)]
        said = finish(people)
        assert all("ended: the federation is finished" in words and "no privacy: seeded" in words for words in said)
        return server.export()


def simulated_ranker(name: str, engine: str, *, n_clients: int, rounds: int, **liars: str | int) -> Array:
    """[n_params] by `hushrank run` with the same recipe and seed."""
    method, chosen, _ = CASES[name]
    same = {"data": "tiny", "folds": [1], "clicks": "perfect", "n_clients": n_clients, "rounds": rounds, "seed": 5}
    recipe = change_recipe(find_recipe(method), {**chosen, **same, **liars})
    (result,), _ = simulate(resolve(recipe), Options(engine=engine, device="cpu"))
    return result.params


def check_equal(place: Path, name: str, *, n_clients: int, rounds: int, engines: tuple[str, ...]) -> None:
    live = live_ranker(place, name, n_clients=n_clients, rounds=rounds)
    for engine in engines:
        simulated = simulated_ranker(name, engine, n_clients=n_clients, rounds=rounds)
        margin = PLAIN_MARGIN if engine == "plain" else FAST_MARGIN
        largest = np.abs(simulated).max()
        assert 0.001 < largest < 10
        np.testing.assert_allclose(live, simulated, atol=margin * largest, rtol=0, err_msg=engine)


@pytest.mark.parametrize("name", ["fpdgd", "foltr-es", "median"])
def test_three_processes_and_five_rounds_give_the_simulators_ranker(name: str, tmp_path: Path) -> None:
    check_equal(tmp_path, name, n_clients=3, rounds=5, engines=("plain",))


def test_a_pretend_liar_does_what_the_simulators_malicious_client_does(tmp_path: Path) -> None:
    live = live_ranker(tmp_path, "median", n_clients=3, rounds=5, first=("--attack", "sign-flip"))
    liars: dict[str, str | int] = {"attack": "sign-flip", "n_malicious": 1}
    simulated, honest = (
        simulated_ranker("median", "plain", n_clients=3, rounds=5, **each) for each in (liars, dict[str, str | int]())
    )
    largest = np.abs(simulated).max()
    np.testing.assert_allclose(live, simulated, atol=PLAIN_MARGIN * largest, rtol=0)
    assert np.abs(simulated - honest).max() > 0.01 * largest


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_twenty_processes_and_fifty_rounds_give_the_simulators_ranker(name: str, tmp_path: Path) -> None:
    check_equal(tmp_path, name, n_clients=20, rounds=50, engines=CASES[name][2])
