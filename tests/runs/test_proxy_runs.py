"""Whole runs with proxies: what the result says of every layer, resuming, workers, and ways of handing tasks over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hushrank.engine.simulate import News
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe, hash_recipe
from hushrank.runs.personal_search import prepare_personal
from hushrank.runs.run import RunOptions, run_recipe

DATA = "personal-like:n_users=6,n_documents=1200,seed=1"
SMALL = {"data": DATA, "rounds": 2, "word_dim": 4, "local_batch": 4, "seed": 3, "cohort": 3}
PROXY = {"topology": "proxy", "users_per_proxy": 3, "clients_per_proxy": 3}
LATE = {**PROXY, "stragglers": 0.34}
SOUND = {"privacy": "sound", "epsilon": 2.0}


def recipe(**changes: object) -> Recipe:
    return change_recipe(NAMED["fedps"], {**SMALL, **changes})


def run(out: Path, chosen: Recipe, **options: Any) -> dict[str, bytes]:
    run_recipe(chosen, RunOptions(out=out, checkpoint_seconds=0.0, **options))
    return {name: (out / name).read_bytes() for name in ("rankers.safetensors", "metrics.jsonl")}


def learns(**changes: object) -> dict[str, str]:
    told = prepare_personal(recipe(**changes), lambda _: None, None).describe()
    return {"promise": told["privacy"], **{line["who"]: line["learns"] for line in told["who_learns_what"]}}


class KilledError(Exception):
    pass


def test_bits_depend_on_neither_the_resume_point_nor_the_workers_nor_the_way_of_handing_over(tmp_path: Path) -> None:
    failing = {**LATE, "dropout": 0.2, "proxy_dropout": 0.2}

    def fail(news: News) -> None:
        if news.share >= 0.5:
            raise KilledError

    whole = run(tmp_path / "whole", recipe(**failing), workers=1)
    with pytest.raises(KilledError):
        run(tmp_path / "killed", recipe(**failing), report=fail)
    assert run(tmp_path / "killed", recipe(**failing), resume=True, workers=2) == whole
    assert (
        run(tmp_path / "upper", recipe(**failing, offload="upper")) == whole
    )  # computed in one way: tests/engine/test_offloaded_runs.py
    assert run(tmp_path / "none", recipe(**failing, offload="none")) != whole
    said = json.loads((tmp_path / "whole" / "result.json").read_text())
    assert said["proxies"]["n_proxies"] == 2 and set(said["metrics"]) >= {"offline/MAP", "offline/MRR", "offline/P@1"}


def test_every_layer_is_told_what_it_learns() -> None:
    told = learns(**PROXY)
    assert "every client's update as it is" in told["a proxy"] and "How many clients" in told["a group server"]
    assert "about the words" in told["a group server"]  # a sum is made of updates, which tell
    assert "the server sums of them" in told["promise"] and "stragglers" not in told["promise"]
    assert "The proxy reads that" in told["in a message"] and "update as it is" not in told["the server"]
    secret = learns(**PROXY, secure_sum=True)
    assert "no single one" in secret["a proxy"] and "A secure sum hides it" in secret["in a message"]
    noisy = learns(**PROXY, **SOUND)
    assert "reads its update before there is any noise" in noisy["promise"] and "adds the noise" in noisy["the server"]


def test_what_stragglers_hand_over_is_said() -> None:
    whole, upper, none = (learns(**LATE, offload=way) for way in ("whole", "upper", "none"))
    assert "logs, profiles and personal vectors" in whole["a proxy"] and "but for stragglers" in whole["promise"]
    assert "(a straggler's go to its proxy)" in whole["a client"] and "go to" not in upper["a client"]
    assert "which it can look up" in upper["a proxy"] and "not the rest of the log" in upper["a proxy"]
    assert "logs, profiles" in learns(**LATE, **SOUND)["promise"]
    secret = learns(**LATE, offload="upper", secure_sum=True)  # half of an update is sent openly all the same
    assert "lower layers changed as it is, outside any secure sum" in secret["a proxy"]
    assert "squared length of their gradients" in secret["a proxy"] and "and each straggler's" in secret["promise"]
    assert "does not hide a straggler's" in secret["in a message"]
    assert "straggler" not in "".join(learns(**PROXY, secure_sum=True).values())
    assert "tragglers" not in none["a proxy"] + none["promise"]


def test_a_secure_sum_below_proxies_is_a_run_like_any_other(tmp_path: Path) -> None:
    run(tmp_path / "secure", recipe(**PROXY, secure_sum=True))
    said = json.loads((tmp_path / "secure" / "result.json").read_text())["proxies"]
    assert said["is_secure"] and said["sum_step"] < 1e-9


def test_recipes_without_proxies_keep_their_names() -> None:
    assert hash_recipe(NAMED["fedps"]) == "e49cc4d2"  # as before there were proxies
    assert hash_recipe(recipe(**PROXY)) != hash_recipe(recipe())
