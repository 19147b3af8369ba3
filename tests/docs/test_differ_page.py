"""What docs/howto/differ.md says in words and draws follows from the measurements and from the partitions."""

from __future__ import annotations

import json
import re
import runpy
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shown_blocks import ROOT

from hushrank.partitions.alike import IID
from hushrank.partitions.named import PARTITIONS
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.remedies.named import NONE, REMEDIES

DOCS = ROOT / "docs"
PAGE = (DOCS / "howto" / "differ.md").read_text(encoding="utf-8")
FOUND: dict[str, Any] = json.loads((DOCS / "benchmarks" / "differ.json").read_text(encoding="utf-8"))
MEASURED = runpy.run_path(str(DOCS / "measured.py"))
DIFFER = runpy.run_path(str(DOCS / "measured_differ.py"))
SAID = runpy.run_path(str(DOCS / "measured_differ_said.py"))
KINDS = runpy.run_path(str(DOCS / "measured_differ_kinds.py"))
TOLD = runpy.run_path(str(DOCS / "told.py"))
USERS = ("perfect", "navigational", "informational")
QUALITY, ONLINE = "personal/nDCG@10", "online/nDCG@10"


def means(setting: str, user: str, metric: str = QUALITY) -> dict[str, float]:
    """{remedy: mean}"""
    row = DIFFER["find_rows"](DOCS / "benchmarks", setting, metric)[user]
    return {remedy: found["mean"] for remedy, found in row["remedies"].items()}


def test_every_measured_setting_is_on_the_page_once() -> None:
    begins = list(DIFFER["SETTINGS"].values())
    for setting in {row["setting"] for row in FOUND["rows"]}:
        assert sum(setting.startswith(begin) for begin in begins) == 1, setting
    assert all(
        PAGE.count(f"<!-- measured: {name} -->") == 1 for name in (*DIFFER["TABLES"], *SAID["TABLES"], *KINDS["TABLES"])
    )


def test_the_page_names_every_partition_and_runs_every_remedy() -> None:
    assert all(f"`partition={name}`" in PAGE for name in PARTITIONS if name != IID)
    assert all(f"--set remedy={name} " in PAGE for name in REMEDIES if name != NONE)


def test_the_page_says_how_many_lists_of_two_labels_have_both() -> None:
    changes = {"data": "mq2008-like", "partition": "labels-2", "n_clients": 3, "folds": [1]}
    parts = [group.train for group in resolve(change_recipe(NAMED["fpdgd"], changes)).groups_of(0, 0)]
    shares = [np.mean([np.ptp(part.grades[part.rows(q)]) > 0 for q in range(part.n_queries)]) for part in parts]
    first, second, third = (f"{share:.2f}".removeprefix("0") for share in shares)
    assert f"have both: {first}, {second} and {third} of the three clients' lists" in PAGE


def test_the_threat_model_says_what_every_remedy_tells() -> None:
    text = (DOCS / "threat_model.md").read_text(encoding="utf-8")
    table = text.split("| remedy | what else a message says |")[1].split("\n\n")[0]
    named = [line.split("|")[1] for line in table.splitlines()[1:]]
    assert all(any(f"`{name}`" in cell for cell in named) for name in REMEDIES if name != NONE)


def test_a_changed_measurement_changes_its_table_alone(tmp_path: Path) -> None:
    data = Path(shutil.copytree(DOCS / "benchmarks", tmp_path / "benchmarks"))
    changed = json.loads((data / "differ.json").read_text())
    rows = [row for row in changed["rows"] if row["setting"].startswith("network") and row["metric"] == QUALITY]
    fedper = rows[0]["remedies"]["fedper"]
    if "values" in fedper:
        fedper["values"] = {one: value + 0.1 for one, value in fedper["values"].items()}
    else:
        fedper["mean"] += 0.1
    (data / "differ.json").write_text(json.dumps(changed))
    before, after = (re.split("<!-- measured: ", text) for text in (PAGE, MEASURED["fill_page"](PAGE, data)))
    assert {a.split(" ")[0] for a, b in zip(before, after, strict=True) if a != b} == {
        "differ-network",
        "differ-claims",
        "differ-verdicts",
        "differ-said-network",
        "differ-remedies",
    }


def test_a_picture_is_the_skew_that_a_run_measures() -> None:
    for partition in ("intents", "labels-1", "labels-2", "clicks", "quantity"):
        part = PAGE.split(f"<!-- measured: differ-skew-{partition} -->")[1].split("<!-- end -->")[0]
        skew = DIFFER["measure_skew"](partition)
        shown = f"{skew.value:.3f}".removeprefix("0")
        assert f"Skew {shown}: the {skew.measure}." in part and part.count("<svg class=") == 2
        assert all(kind in part for kind, _ in skew.rows)


def test_the_skew_of_intents_does_not_tell_whether_a_taste_carries_over() -> None:
    values = [DIFFER["measure_skew"]("intents", carry=carry).value for carry in (0.0, 0.5, 1.0)]
    assert max(values) - min(values) < 0.003 and round(values[0], 1) == 0.8


def test_the_page_says_how_far_the_ceiling_is_from_local_training_with_four_clients() -> None:
    """They differ in the rounding of sums alone."""
    settings = ("four", "carry-0-four", "carry-1-four", "other-four")
    apart = [abs(found["local"] - found["ceiling"]) for found in (means(*each) for each in product(settings, USERS))]
    assert f"differ by up to {max(apart):.3f} with".replace(" 0.", " .") in PAGE


def test_the_words_name_whom_it_holds_for_as_the_table_does() -> None:
    lines = [line.strip("|").split(" | ") for line in DIFFER["claims"](DOCS / "benchmarks").splitlines()[2:]]
    verdicts = iter(line[-1].strip() for line in lines)
    words = DIFFER["verdicts"](DOCS / "benchmarks").splitlines()
    assert len(words) == len(DIFFER["CLAIMED"])
    for setting, line in zip(DIFFER["CLAIMED"], words, strict=True):
        judged = {user: next(verdicts) for user in DIFFER["find_rows"](DOCS / "benchmarks", setting)}
        held = [user for user, verdict in judged.items() if verdict == "yes"]
        first, _, rest = line.partition(".** ") if ".** " in line else line.partition(".**")
        assert ("holds for all users" in first) is (len(held) == 3)
        assert ("does not hold" in first) is (not held and "no" in judged.values())
        for user, verdict in judged.items():
            assert (f"{user.capitalize()} users: " in rest) is (verdict != "yes")


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ({"perfect": (0.03, 0.001)}, "above it all for perfect users (+.030, p\u00a0.001)"),
        ({"perfect": (0.03, None)}, "not tested against it all for perfect users (+.030)"),
        (
            {"perfect": (0.03, 0.01), "navigational": (0.02, 0.04), "informational": (-0.01, 0.6)},
            "above it all for perfect and navigational users (+.020 to +.030, p at most\u00a0.040), and not shown to "
            "differ from it for informational users (\u2212.010, p\u00a0.60)",
        ),
        (
            dict(zip(USERS, [(-0.02, 0.01)] * 3, strict=True)),
            "below it all for all users (\u2212.020, p at most\u00a0.010)",
        ),
    ],
)
def test_only_what_a_test_shows_is_called_above_or_below(cases: dict[str, Any], said: str) -> None:
    assert TOLD["tell_cases"](cases, "it all") == said


def test_more_rounds_are_told_where_they_were_run_and_said_not_to_have_been_where_not(tmp_path: Path) -> None:
    data = Path(shutil.copytree(DOCS / "benchmarks", tmp_path / "benchmarks"))
    found = json.loads((data / "differ.json").read_text(encoding="utf-8"))
    begin = DIFFER["SETTINGS"]["four-long"]
    found["rows"] = [row for row in found["rows"] if not row["setting"].startswith(begin)]
    (data / "differ.json").write_text(json.dumps(found))
    assert "**30,000 rounds were not run.**" in SAID["longer"](data)
    values = {"averaging": 0.3, "local": 0.31, "ceiling": 0.31, "tastes": 0.33}
    remedies = {
        name: {"values": {str(n): level + 0.001 * (n % 3) * len(name) for n in range(31, 36)}}
        for name, level in values.items()
    }
    row = {"setting": f"{begin}; more", "user": "informational", "metric": QUALITY, "remedies": remedies}
    (data / "differ.json").write_text(json.dumps({**found, "rows": [*found["rows"], row]}))
    said = SAID["longer"](data)
    assert "30,000 rounds were not run" not in said and "| four clients, 30,000 rounds (5 data sets) | " in said
    assert "with 30,000 rounds it is above averaging, +.0" in said


def test_linear_tastes_is_called_above_fedper_s_network_only_where_that_was_tested(tmp_path: Path) -> None:
    data = Path(shutil.copytree(DOCS / "benchmarks", tmp_path / "benchmarks"))
    found = json.loads((data / "differ.json").read_text(encoding="utf-8"))
    both = [r for r in found["rows"] if r["setting"].startswith(("network of 64", "linear, as the network"))]
    for row in both:
        is_linear = row["setting"].startswith("linear")
        row["remedies"] = {
            name: {"values": {str(n): 0.3 + 0.1 * is_linear + 0.001 * (n % (2 + is_linear)) for n in range(1, 6)}}
            for name in row["remedies"]
        }
    (data / "differ.json").write_text(json.dumps(found))
    assert "Linear `tastes` is above the network with `fedper` for all users (+.10" in SAID["network"](data)
    for row in both:
        for remedy in row["remedies"].values():
            remedy |= {"mean": 0.4, "se": 0.01, "p against averaging": 0.5, "p against local": 0.5}
            del remedy["values"]
        row["data_sets"] = 5
    (data / "differ.json").write_text(json.dumps(found))
    assert "Linear `tastes` is not tested against the network with `fedper`" in SAID["network"](data)
    assert "without a test" in SAID["beyond_fedper"](data)


def test_what_shares_of_labels_and_queries_cost_is_what_was_measured_beside_clients_alike() -> None:
    rows = json.loads((DOCS / "benchmarks" / "expelled.json").read_text(encoding="utf-8"))["rows"]
    found = {(row["case"], row["user"]): row["average"] for row in rows if row["labels"] == "everybody's"}
    for case in ("dirichlet", "queries"):
        line = next(line for line in PAGE.splitlines() if f"| `partition={case}` |" in line).replace("\u2212", "-")
        shown = [float(number) for number in re.findall(r"(?<=[ ,])[+-]?\.\d{3}", line)]
        assert shown == [round(found[f"{case}, 10 clients", u] - found["alike", u], 3) for u in USERS]


def test_noisy_clicks_open_tastes_late() -> None:
    rows = json.loads((DOCS / "benchmarks" / "differ_opening.json").read_text(encoding="utf-8"))["rows"]
    beyond = {row["round"]: round(row["own"] - row["shared"], 4) for row in rows}
    assert list(beyond) == list(range(0, 1001, 100))
    assert all(beyond[n] == 0 for n in range(0, 401, 100)) and [round(beyond[n], 3) for n in (500, 600)] == [-0.001] * 2
    late = [beyond[n] for n in range(700, 1001, 100)]
    assert late == sorted(late) and late[0] > 0


def test_that_tastes_cost_nothing_is_said_where_both_settings_show_it(tmp_path: Path) -> None:
    data = Path(shutil.copytree(DOCS / "benchmarks", tmp_path / "benchmarks"))
    rows = [row for setting in ("alike-four", "alike-many") for row in DIFFER["find_rows"](data, setting).values()]
    is_shown = all(row["equivalent_within_.002_p"] < 0.05 for row in rows)
    assert SAID["alike"](data).startswith("**`tastes` costs nothing") is is_shown
    found = json.loads((data / "differ.json").read_text(encoding="utf-8"))
    for row in found["rows"]:
        if row["setting"].startswith(DIFFER["SETTINGS"]["alike-many"]) and row["user"] == "perfect":
            levels = {"averaging": 0.3, "tastes": 0.31}
            row["remedies"] = {
                remedy: {"values": {str(n): level + 0.001 * n * level for n in range(3)}}
                for remedy, level in levels.items()
            }
    (data / "differ.json").write_text(json.dumps(found))
    assert "is not shown for perfect users, 1,000 clients" in SAID["alike"](data).replace("; ", ", ")
