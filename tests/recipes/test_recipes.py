"""What recipes may say, and what they are refused for."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from hushrank.keys import Key, method_keys, read_value
from hushrank.recipes.recipe import KEYS, NAMED, as_json, change_recipe, hash_recipe, recipe_from_json
from hushrank.recipes.resolve import resolve_method
from hushrank.recipes.rooms import CHOOSERS
from hushrank.recipes.values import parse_assignments
from hushrank.runs.run import RunOptions, run_recipe


@pytest.mark.parametrize("name", NAMED)
def test_a_recipe_survives_json(name: str) -> None:
    assert recipe_from_json(as_json(NAMED[name])) == NAMED[name]


def test_only_what_is_special_names_a_recipe() -> None:
    changed = change_recipe(NAMED["fpdgd"], {"rounds": 7})
    assert hash_recipe(changed) != hash_recipe(NAMED["fpdgd"])
    assert hash_recipe(change_recipe(changed, {"rounds": 100})) == hash_recipe(NAMED["fpdgd"])
    # a key that a later version adds must not change it
    assert hash_recipe(changed) == hashlib.sha256(b'{"rounds": 7}').hexdigest()[:8]


@pytest.mark.parametrize("seed", [0, 128, 2**64 - 1])
def test_every_seed_of_64_bits_is_taken(seed: int) -> None:
    assert change_recipe(NAMED["fpdgd"], {"seed": seed}).seed == seed


def test_none_takes_a_setting_back() -> None:
    attacked = change_recipe(NAMED["fpdgd"], {"attack": "sign-flip", "n_malicious": 2, "cohort": 5})
    honest = change_recipe(attacked, parse_assignments(["attack=none", "n_malicious=0", "cohort=none"]))
    assert honest == NAMED["fpdgd"]
    assert change_recipe(honest, {"normalise": "none"}).normalise == "none"  # there it is a value of its own


METHODS = [method_keys(room.methods, name) for room in CHOOSERS.values() if room.methods for name in room.methods]
FRACTIONS = [key for keys in (KEYS, *METHODS) for key in keys.values() if float in key.kinds]


@pytest.mark.parametrize("key", FRACTIONS, ids=lambda key: key.name)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e300"])
def test_no_fraction_of_a_recipe_is_beyond_what_numbers_can_hold(key: Key, value: str) -> None:
    with pytest.raises(ValueError, match=rf"^{key.name} is .*, must be a finite number from -1e30 to 1e30\.$"):
        read_value(key, parse_assignments([f"{key.name}={value}"])[key.name])


def test_attacks_refuse_settings_that_no_lie_can_be_made_of() -> None:
    liars = {"attack": "little-is-enough", "n_malicious": 3}
    for text in ("nan", "inf", "-1e31"):
        with pytest.raises(ValueError, match=r"^z is .*, must be a finite number"):
            change_recipe(NAMED["fpdgd"], {**liars, **parse_assignments([f"z={text}"])})
    assert change_recipe(NAMED["fpdgd"], {**liars, "z": -1.5}).options == {"z": -1.5}


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("fpdgd", {"recipe": "pdgd"}, "recipe is not a key to change"),
        ("pdgd", {"attack": "sign-flip", "n_malicious": 1}, "recipe pdgd is central"),
        ("fpdgd", {"log": "x.jsonl", "learner": "hinge"}, "learner is 'hinge'"),
        ("fpdgd", {"seed": -1}, "seed is -1, must be a whole number from 0"),
        ("fpdgd", {"seed": 2**64}, f"seed is {2**64}, must be a whole number from 0"),
        ("fpdgd", {"sigma": 0.1}, "sigma is for recipe foltr-es"),
        ("fpdgd", {"privacy": "paper"}, "privacy=paper needs epsilon"),
        ("fpdgd", {"privacy": "paper", "epsilon": 3}, "Delta was published for 1.2, 2.3, 4.5, 10"),
        ("fpdgd", {"privacy": "paper", "epsilon": 0, "sensitivity": 3}, "epsilon is 0"),
        ("fpdgd", {"privacy": "paper", "epsilon": 4.5, "cohort": 10}, "all must take part in every round"),
        ("fpdgd", {"privacy": "paper", "epsilon": 4.5, "dropout": 0.1}, "all must take part in every round"),
        ("fpdgd", {"privacy": "sound"}, "needs epsilon .* or noise_multiplier"),
        ("fpdgd", {"privacy": "sound", "epsilon": 1, "noise_multiplier": 1}, "needs epsilon .* or noise_multiplier"),
        ("fpdgd", {"privacy": "sound", "epsilon": 0}, "epsilon is 0"),
        ("fpdgd", {"privacy": "sound", "epsilon": 1, "delta": 0}, "delta is 0"),
        ("fpdgd", {"privacy": "sound", "epsilon": 1, "sensitivity": 3}, "sensitivity is for privacy=paper"),
        ("fpdgd", {"clip_norm": 0.1}, "clip_norm is for privacy=sound"),
        ("fpdgd", {"sampling": "poisson"}, "sampling=poisson needs cohort"),
        ("fpdgd", {"noise_at": "clients"}, "noise_at is for privacy=sound"),
        ("fpdgd", {"privacy": "sound", "epsilon": 1, "noise_at": "proxy"}, "noise_at is 'proxy', must be one of"),
        ("fpdgd", {"privacy": "sound", "epsilon": 1, "noise_at": "clients"}, "noise_at=clients and n_honest, .* both"),
        ("fpdgd", {"privacy": "sound", "epsilon": 1, "n_honest": 5}, "noise_at=clients and n_honest, .* both"),
        (
            "fpdgd",
            {"privacy": "sound", "epsilon": 1, "noise_at": "clients", "n_honest": 30, "cohort": 20},
            "n_honest is 30, must be from 1 to 20, the clients in a round",
        ),
        (
            "fpdgd",
            {"privacy": "sound", "epsilon": 1, "noise_at": "clients", "n_honest": 0},
            "n_honest is 0, must be from 1 to 1000",
        ),
        ("fpdgd", {"privacy": "sound", "epsilon": 1, "secure_sum": True}, "behind a secure sum the noise must be in"),
        ("fpdgd", {"secure_sum": True, "attack": "sign-flip", "n_malicious": 1}, "a secure sum shows none"),
        ("fpdgd", {"secure_sum": True, "n_clients": 1}, "secure_sum with 1 client in a round hides nothing"),
        ("fpdgd", {"secure_sum": 1}, "secure_sum is 1, must be true or false"),
        ("fpdgd", {"sum_bound": 2.0}, "sum_bound is for secure_sum without noise"),
        ("fpdgd", {"secure_sum": True, "sum_bound": 0}, "sum_bound is 0.0, must be > 0"),
        ("foltr-es", {"secure_sum": True}, "recipe foltr-es sends a seed and rewards, not updates"),
        ("pdgd", {"secure_sum": True}, "recipe pdgd is central"),
        ("mse", {"secure_sum": True}, "secure_sum is for learning from clicks"),
        ("fpdgd", {"sampling": "coins", "cohort": 5}, "sampling is 'coins', must be one of fixed, poisson"),
        ("fpdgd", {"privacy": "paper", "epsilon": 4.5, "cohort": 10, "sampling": "poisson"}, "all must take part"),
        ("pdgd", {"privacy": "sound", "epsilon": 1}, "recipe pdgd is central"),
        ("pdgd", {"dropout": 0.5}, "recipe pdgd is central"),
        ("pdgd", {"interactions": [2, 4]}, "interactions is one number"),
        ("foltr-es", {"privacy": "sound"}, "privacy=sound is for fpdgd"),
        ("foltr-es", {"interactions": 3}, "interactions is 3, must be even"),
        ("foltr-es", {"interactions": [2, 5]}, "interactions is 5, must be even"),
        ("foltr-es", {"p": 0.09}, "p is 0.09, must be above 1/n"),
        ("foltr-es", {"p": 1.5}, "p is 1.5, must be above"),
        ("foltr-es", {"sigma": 0}, "sigma is 0.0, must be > 0"),
        ("foltr-es", {"reward": "clicks"}, "reward is 'clicks', must be one of MaxRR"),
        ("foltr-es", {"privacy": "none", "p": 0.5}, "p is 0.5, but privacy=none"),
        ("foltr-es", {"batch": 2}, "batch"),
        ("foltr-es", {"attack": "sign-flip", "n_malicious": 1}, "sends a seed and rewards, not updates"),
        ("foltr-es", {"antithetic": 1}, "antithetic is 1, must be true or false"),
        ("mse", {"rounds": 5}, "rounds is for learning from clicks; recipe mse learns from labels"),
    ],
)
def test_what_cannot_work_is_refused_at_the_door(name: str, changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        change_recipe(NAMED[name], changes)


def test_a_baseline_is_a_run_like_any_other(tmp_path: Path) -> None:
    changes = {"data": "tiny", "clicks": ["perfect", "informational"]}
    found = run_recipe(change_recipe(NAMED["mse"], changes), RunOptions(out=tmp_path / "mse")).result
    metrics = found["metrics"]
    assert metrics["perfect"]["offline/nDCG@10"] == metrics["informational"]["offline/nDCG@10"]  # one ranker for all
    assert metrics["perfect"]["offline/MaxRR"]["mean"] < metrics["informational"]["offline/MaxRR"]["mean"]
    assert metrics["perfect"]["offline/nDCG@10"]["mean"] > 0.7  # a random order has about .6
    assert "online/nDCG@10" not in metrics["perfect"] and found["n_interactions"] == 0
    assert (tmp_path / "mse" / "report.html").is_file()


def test_foltr_es_says_what_it_protects(tmp_path: Path) -> None:
    small = {"data": "tiny", "folds": [1], "n_clients": 10, "rounds": 2}
    found = run_recipe(change_recipe(NAMED["foltr-es"], small), RunOptions(out=tmp_path / "es")).result
    assert found["bytes_per_client_round"] == 12
    assert "epsilon 4.5" in found["privacy"] and "36" in found["privacy"]  # ln(.9 x 10 / .1) = 4.4998; x 4 x 2 = 36
    one_way = run_recipe(
        change_recipe(NAMED["foltr-es"], {**small, "antithetic": False, "privacy": "none"}),
        RunOptions(out=tmp_path / "one"),
    ).result
    assert one_way["bytes_per_client_round"] == 8 and "No guarantee" in one_way["privacy"]


@pytest.mark.parametrize("name", ["foltr-es", "fpdgd"])
def test_the_published_codes_variant_reaches_the_method_and_only_then_changes_the_hash(name: str) -> None:
    budget = {"privacy": "paper", "epsilon": 4.5} if name == "fpdgd" else {}
    plain, other = (change_recipe(NAMED[name], {**budget, "variant": v}) for v in ("paper", "published-code"))
    assert hash_recipe(plain) == hash_recipe(change_recipe(NAMED[name], budget)) != hash_recipe(other)
    methods = [resolve_method(recipe, n_features=46) for recipe in (plain, other)]
    assert methods[0].exchange != methods[1].exchange
    with pytest.raises(ValueError, match="variant is 'text', must be one of paper, published-code"):
        change_recipe(NAMED[name], {**budget, "variant": "text"})
