"""The papers' tables and figures: complete, well-formed, and refused when they are not."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from hushrank.data.catalog import CATALOG
from hushrank.reproduce.literature import FOLDER, find_result, published_results, read_results

ROOT = Path(__file__).parents[2]
RESULTS = published_results()
OTHER_DATA = {"intent-change", "aol", "commercial"}  # not in the catalogue
GOOD = """
paper = "fpdgd"
[[result]]
name = "fpdgd.table9"
aliases = ["thesis.table9.1"]
shows = "What a reader learns"
data = ["mq2007"]
metric = "offline/nDCG@10"
needs = ["foltr-es"]
row = [{ clicks = "perfect", published = 0.5 }, { clicks = "perfect", metric = "epsilon", published = 2 }]
[[result.finding]]
id = "more-is-better"
claim = "More is better."
where = "section 1"
"""


def numbers(name: str, **cell: str | float) -> list[float]:
    return [row.published for row in find_result(name).rows if cell.items() <= row.cell.items()]


def test_every_paper_has_its_file_and_stands_in_the_bibliography() -> None:
    papers = {result.paper for result in RESULTS.values()}
    known = re.findall(r"^@\w+\{([\w-]+),", (ROOT / "papers.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert papers == {path.stem for path in FOLDER.glob("*.toml")} == {"foltr-es", "fpdgd", "study", "thesis", "fedps"}
    assert papers <= set(known)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_says_what_it_shows_on_which_data_and_what_is_claimed(name: str) -> None:
    result = RESULTS[name]
    assert re.fullmatch(rf"{result.paper}\.(table|figure)[1-9]\d*(\.[1-9]\d*)?", name)
    assert result.shows and not result.shows.endswith(".") and "\n" not in result.shows + result.note
    assert set(result.data) <= CATALOG.keys() | OTHER_DATA
    assert result.rows or ".table" not in name
    assert 1 <= len(result.findings) <= 7
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", claim.id) and claim.where for claim in result.findings)
    assert all(claim.claim.endswith(".") for claim in result.findings)


@pytest.mark.parametrize("name", [name for name, result in RESULTS.items() if result.rows])
def test_the_cells_of_a_result_are_named_alike_and_by_words_that_exist(name: str) -> None:
    result = RESULTS[name]
    users = {row.cell["clicks"] for row in result.rows if "clicks" in row.cell}
    assert users in (set(), {"perfect", "navigational", "informational"})
    assert {row.cell.get("data", result.data[0] if result.data else "") for row in result.rows} <= {*result.data, ""}
    assert all(0 <= row.published <= 1 for row in result.rows if row.metric.startswith("offline/"))
    assert {row.where for row in result.rows} <= {None, "result files"}


def test_an_alias_leads_to_the_result_of_the_other_paper() -> None:
    assert find_result("thesis.table3.1") is find_result("fpdgd.table2")
    theirs = [find_result(f"thesis.figure3.{n}").name for n in range(1, 11)]
    assert theirs == [f"study.figure{n}" for n in range(1, 6)] + [f"fpdgd.figure{n}" for n in range(2, 7)]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no published result is called 'fpdgd.tabel2'; did you mean 'fpdgd.table2'"):
        find_result("fpdgd.tabel2")
    with pytest.raises(ValueError, match=r"'\?'; hushrank reproduce --list shows all names"):
        find_result("?")


def test_the_privacy_of_perfect_users_is_the_bound() -> None:
    perfect = numbers("foltr-es.table2", clicks="perfect")
    assert perfect == [0.51, 1.61, 2.71, 3.81, 4.55, 6.20]
    # Equation 10 with n = 6: ln(5 p / (1 - p)), printed to two digits
    assert perfect == [round(math.log(5 * p / (1 - p)), 2) for p in (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)]


def test_the_communication_of_fedps_is_exact_by_its_formula() -> None:
    n = 118_067
    assert numbers("fedps.table6", method="fedps-flat", delay_ratio=0.1)[0] == 2 * n
    for delay_ratio in (0.1, 0.2):
        for k in (100, 1000):
            exchanges = math.ceil(n / k) * 2 * (k / 100 + 10 + 10 * (1 - delay_ratio))
            assert numbers("fedps.table6", delay_ratio=delay_ratio, n_sampled=k) == [pytest.approx(exchanges)]


def test_one_label_per_client_is_perfect_online_by_its_formula() -> None:
    gamma = 0.9995
    largest = round(0.8 * (1 - gamma**10_000) / (1 - gamma), 2)  # four clients of five score 1 in every round
    assert numbers("thesis.table4.3", distribution="non-iid") == [largest] * 18 == [1589.23] * 18


def test_some_cells_are_those_of_the_papers() -> None:
    fpdgd = numbers("fpdgd.table2", data="mq2007", clicks="perfect", method="fpdgd")
    assert fpdgd == [296.03, 296.09, 313.28, 313.26]
    mlp = numbers("foltr-es.table3", data="mq2008", split="test", ranker="mlp")
    assert mlp == [0.464, 0.731, 0.414]
    assert numbers("thesis.table4.2", ranker="linear", clicks="perfect") == [1002.36, 648.71]
    unlearnt = numbers("thesis.table6.2", data="mslr-web10k", local_steps=1, clicks="informational")
    assert unlearnt == [0.393, 0.343, 0.332]
    assert numbers("fedps.table3", data="aol", method="fedps-proxy") == [0.7112, 0.7242, 0.6262]


def test_tables_hold_every_cell_that_can_be_read() -> None:
    cells = {name: len(result.rows) for name, result in RESULTS.items() if ".table" in name}
    assert cells == {
        "foltr-es.table2": 3 * 6,
        "foltr-es.table3": 2 * 2 * 4 * 3,
        "fpdgd.table2": 2 * 3 * 2 * 4,
        "thesis.table4.2": 2 * 2 * 3,
        "thesis.table4.3": 2 * 3 * 2 * 3,
        "thesis.table6.2": 4 * 3 + 4 * 4 * 9 - 9,  # nine cells are garbled in the text
        "fedps.table2": 2 * 4,
        "fedps.table3": 11 * 7 - 1,  # the original order has no P-Improve
        "fedps.table4": 5 * 3,
        "fedps.table5": 3 * 3,
        "fedps.table6": 2 * 2 + 4,
    }


def test_printed_numbers_agree_with_what_the_texts_say_of_them() -> None:
    for data in ("mq2007", "mq2008"):
        for split in ("train", "test"):
            mse, svm = (numbers("foltr-es.table3", data=data, split=split, method=m) for m in ("mse", "ranking-svm"))
            linear, mlp = (
                numbers("foltr-es.table3", data=data, split=split, method="foltr-es", ranker=r)
                for r in ("linear", "mlp")
            )
            assert all(a < b for a, b in zip(mse, svm, strict=True)) and all(
                a < b for a, b in zip(linear, mlp, strict=True)
            )


def write(folder: Path, text: str) -> Path:
    path = folder / "some.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_takes_the_metric_of_its_result_unless_it_has_its_own(tmp_path: Path) -> None:
    result = read_results([write(tmp_path, GOOD)])["fpdgd.table9"]
    assert [(row.metric, row.published) for row in result.rows] == [("offline/nDCG@10", 0.5), ("epsilon", 2.0)]
    assert result.rows[0].cell == {"clicks": "perfect"} and result.note == "" and result.needs == ("foltr-es",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('metric = "off', 'colour = "red"\nmetric = "off', "some.toml, fpdgd.table9: unknown key 'colour'"),
        ('shows = "What a reader learns"', "", "some.toml, fpdgd.table9: the key 'shows' is missing"),
        ('name = "fpdgd.table9"', "", "some.toml, a result without name: the key 'name' is missing"),
        ('where = "section 1"', "", "some.toml, fpdgd.table9, a finding: the key 'where' is missing"),
        ('shows = "What a reader learns"', "shows = 3", "fpdgd.table9: shows is 3, which is of a wrong kind"),
        ("fpdgd.table9", "thesis.table9", "must be <paper>.<table|figure><number>, the first of fpdgd"),
        ("fpdgd.table9", "fpdgd.files", "must be <paper>.<table|figure><number>, the first of fpdgd"),
        ("thesis.table9.1", "fpdgd.table9", "some.toml, fpdgd.table9: 'fpdgd.table9' stands there twice"),
        ('needs = ["foltr-es"]', 'needs = ["luck"]', "fpdgd.table9: needs luck, must be among foltr-es, "),
        ("published = 0.5", "published = nan", "fpdgd.table9, row .*: published is nan, .* not a finite number"),
        ("published = 0.5", "p = inf, published = 0.5", "fpdgd.table9, row .*: p is inf, .* not a finite number"),
        ("published = 0.5", "Users = 3, published = 0.5", "fpdgd.table9, row .*: unknown key 'Users'"),
        ("published = 0.5", "value = 0.5", "fpdgd.table9, row .*: the key 'published' is missing"),
        ('metric = "epsilon", ', "", "fpdgd.table9: .*perfect.* stands there twice"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        read_results([write(tmp_path, GOOD.replace(old, new))])


def test_a_file_that_is_not_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"some.toml is not a TOML file: "):
        read_results([write(tmp_path, "paper = fpdgd")])


def test_a_name_or_a_finding_given_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    with pytest.raises(ValueError, match=r"some.toml, fpdgd.table9: 'fpdgd.table9' stands there twice"):
        read_results([path, path])
    finding = GOOD[GOOD.index("[[result.finding]]") :]
    with pytest.raises(ValueError, match=r"some.toml, fpdgd.table9: 'more-is-better' stands there twice"):
        read_results([write(tmp_path, GOOD + finding)])
