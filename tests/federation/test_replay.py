"""Learning from a log of impressions and clicks instead of a click model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.engine.simulate import Options, simulate
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.runs.click_log import LogRequest, make_log
from hushrank.runs.run import RunOptions, run_recipe
from hushrank.streams import seed_key
from hushrank.types import Client

N_CLIENTS = 12


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    make_log(LogRequest("tiny", clicks="navigational", n_impressions=600, n_clients=N_CLIENTS, seed=3), path)
    return path


def recipe(log: Path, **changes: object) -> Recipe:
    small = {"data": "tiny", "folds": [1], "log": str(log), "interactions": 1, "rounds": 5, "seed": 3}
    return change_recipe(NAMED["fpdgd"], small | changes)


def test_the_first_round_of_a_replay_is_that_of_the_people_who_made_the_log(log: Path) -> None:
    replayed = simulate(resolve(recipe(log, rounds=1)))[0][0].params
    online = change_recipe(
        NAMED["fpdgd"],
        {"data": "tiny", "folds": [1], "n_clients": N_CLIENTS, "interactions": 1, "rounds": 1, "seed": 3},
    )
    np.testing.assert_allclose(replayed, simulate(resolve(online))[0][0].params, atol=1e-6)


def test_a_log_teaches_what_its_lists_did_not_know(log: Path, tmp_path: Path) -> None:
    run = run_recipe(recipe(log, rounds=50), RunOptions(out=tmp_path / "r"))
    assert run.result["recipe"]["n_clients"] == N_CLIENTS  # the log says so
    curve = [json.loads(line) for line in (tmp_path / "r" / "metrics.jsonl").read_text().splitlines()]
    vali = [row["value"] for row in curve if row["name"] == "vali/nDCG@10" and row["click"] == "log"]
    assert vali[-1] > vali[0] + 0.1
    again = run_recipe(recipe(log, rounds=50), RunOptions(out=tmp_path / "r", resume=True))
    assert again.result["metrics"] == run.result["metrics"]


def test_an_importance_weight_of_one_changes_nothing_while_the_ranker_is_the_logging_one(log: Path) -> None:
    plain, corrected = (simulate(resolve(recipe(log, rounds=1, max_weight=w)))[0][0].params for w in (None, 5.0))
    np.testing.assert_allclose(plain, corrected, atol=1e-6)


def test_central_replay_is_one_learner_with_every_impression(log: Path) -> None:
    central = change_recipe(
        NAMED["pdgd"], {"data": "tiny", "folds": [1], "log": str(log), "interactions": 600, "rounds": 1}
    )
    setting = resolve(central)
    assert setting.replays is not None and len(setting.replays[0].own) == 1
    result = simulate(setting)[0][0]
    assert result.searches.tolist() == [600] and np.abs(result.params).max() > 0


def test_a_client_without_impressions_has_no_say(log: Path) -> None:
    setting = resolve(recipe(log, rounds=1))
    assert setting.replays is not None
    own = setting.replays[0].own
    alone = replace(setting.replays[0], own=(own[0], *(np.zeros(0, np.int64) for _ in own[1:])))
    only_first = simulate(replace(setting, replays=(alone,)))[0][0].params
    population = replace(setting.method.population, n_clients=1)
    first = replace(setting, method=replace(setting.method, population=population))
    np.testing.assert_array_equal(only_first, simulate(first)[0][0].params)


SOUND: dict[str, object] = {"privacy": "sound", "noise_multiplier": 0.5}


@pytest.mark.parametrize(
    "protection",
    [
        {"privacy": "paper", "epsilon": 4.5},
        SOUND,
        {**SOUND, "noise_at": "clients", "n_honest": 8},
        {"secure_sum": True},
        {**SOUND, "noise_at": "clients", "n_honest": 8, "secure_sum": True},
    ],
    ids=["paper", "server noise", "client noise", "secure sum", "secure sum with noise"],
)
def test_what_is_learnt_from_a_log_can_be_protected(log: Path, protection: dict[str, object]) -> None:
    seen = simulate(resolve(recipe(log, **protection)))[0][0]
    assert np.isfinite(seen.params).all() and seen.params.any()
    assert seen.params.tobytes() != simulate(resolve(recipe(log)))[0][0].params.tobytes()


def test_published_noise_clips_the_weights_of_a_replay_too(log: Path) -> None:
    setting = resolve(recipe(log, rounds=20, privacy="paper", epsilon=1e9, sensitivity=0.02))
    assert np.linalg.norm(simulate(setting)[0][0].params) <= 0.01 + 1e-6  # half of Delta


def test_under_protection_a_client_without_impressions_answers_too(log: Path) -> None:
    setting = resolve(recipe(log, rounds=1, privacy="paper", epsilon=4.5))
    assert setting.replays is not None
    own = setting.replays[0].own
    alone = replace(setting.replays[0], own=(own[0], *(np.zeros(0, np.int64) for _ in own[1:])))
    assert simulate(replace(setting, replays=(alone,)))[0][0].params.any()  # the noise of twelve shares is whole


def test_a_secure_sum_hears_those_too_who_learnt_nothing(log: Path) -> None:
    setting = resolve(recipe(log, rounds=1, secure_sum=True))
    assert setting.replays is not None
    own = setting.replays[0].own
    alone = replace(setting.replays[0], own=(own[0], *(np.zeros(0, np.int64) for _ in own[1:])))
    assert simulate(replace(setting, replays=(alone,)))[0][0].params.any()  # eleven of twelve send weight 0


def test_under_published_noise_who_learnt_nothing_keeps_to_the_norm_of_weights(log: Path) -> None:
    setting = resolve(recipe(log, rounds=1, privacy="paper", epsilon=1.2))
    assert setting.replays is not None
    alone = replace(setting.replays[0], own=tuple(np.zeros(0, np.int64) for _ in setting.replays[0].own))
    federation = make_federation(replace(setting, replays=(alone,)), Cell(0, 0, 0))
    far = np.full(setting.method.n_params, 9.0, np.float32)
    update, _ = alone(federation, far, Client(0, 4), key=seed_key(0), round=1)
    assert np.linalg.norm(far + update.delta) == pytest.approx(3.0 / 2)  # Delta / 2


def test_bad_combinations_are_refused(log: Path) -> None:
    with pytest.raises(ValueError, match='with a log, clicks is "log"'):
        recipe(log, clicks="perfect")
    with pytest.raises(ValueError, match='with a log, clicks is "log"'):
        change_recipe(NAMED["fpdgd"], {"clicks": "log"})
    with pytest.raises(ValueError, match="max_weight is for learning from a click log"):
        change_recipe(NAMED["fpdgd"], {"max_weight": 2})
    with pytest.raises(ValueError, match="engine=numba does not do a click log"):
        simulate(resolve(recipe(log)), Options(engine="numba"))
    with pytest.raises(FileNotFoundError):
        resolve(recipe(log.parent / "gone.jsonl"))
