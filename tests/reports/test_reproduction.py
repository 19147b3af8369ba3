"""The page of a reproduced table or figure, and its tables for the terminal."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from fake_results import make_reproduction
from fake_runs import make_run
from reading import Checker, text_of
from rich.console import Console

from hushrank.reports.reproduction import (
    MAX_REFERENCES,
    published_lines,
    render_reproduction,
    reproduction_table,
    reproduction_text,
    write_reproduction,
)
from hushrank.reports.reproduction_summary import (
    FindingCounts,
    findings_text,
    published_decimals,
    read_reproduction,
    real_name,
)
from hushrank.reports.summary import RunSummary, from_directory


@pytest.fixture
def runs(tmp_path: Path) -> list[RunSummary]:
    return [from_directory(make_run(tmp_path / f"n{n}", n_clients=n, n_evaluations=3)) for n in (10, 50)]


def test_the_page_leads_with_the_data_and_how_the_findings_fared() -> None:
    text = text_of(render_reproduction(make_reproduction()))
    assert "stand-in data: shaped like MSLR-WEB10K, not the real set" in text and "quick version" in text
    assert "Of 3 findings 1 held, 1 did not and 1 was not judged." in text
    real = text_of(render_reproduction(make_reproduction(is_stand_in=False)))
    assert "stand-in" not in real and "quick version" not in real and "Run on MSLR-WEB10K." in real


def test_findings_come_first_as_a_mark_and_a_word() -> None:
    page = render_reproduction(make_reproduction())
    text = text_of(page)
    for words in ("✓ held Without noise", "✗ not held With noise", "– not judged FOLtR-ES"):
        assert words in text
    assert "p &lt; .001." in text and "p = .21." in text and "(section 5.2)" in text
    assert page.index("<h2>Findings") < page.index("<h2>Ours and the published") < page.index("<h2>About")


def test_ours_stand_beside_the_published_with_the_difference() -> None:
    page = render_reproduction(make_reproduction())
    assert '<td class="number" data-value="0.41" data-std="0.006">.410 ± .006</td>' in page
    assert '<td class="number" data-value="0.423">.423</td>' in page and ">\u2212.013</td>" in page
    assert "Needs privacy=paper" in page


def test_what_all_rows_share_is_said_once() -> None:
    page = render_reproduction(make_reproduction())
    assert "The same in all rows: data mslr-web10k, method fpdgd." in page
    assert '<th scope="col">user</th><th scope="col">clients</th>' in page and '<th scope="col">method</th>' not in page


def test_a_figure_without_printed_numbers_has_no_column_for_them() -> None:
    result = make_reproduction()
    for row in result["rows"]:
        row |= {"published": None, "difference": None}
    page = render_reproduction(result)
    assert '">published</th>' not in page and "prints no numbers" in page


def test_several_measures_have_a_column() -> None:
    result = make_reproduction()
    assert '<th scope="col" class="number">ours, test nDCG@10</th>' in render_reproduction(result)
    result["rows"][0]["metric"] = "offline/MaxRR"
    page = render_reproduction(result)
    assert '<th scope="col">measure</th>' in page and "<td>test MaxRR</td>" in page


def test_published_numbers_keep_the_decimals_that_the_paper_prints() -> None:
    result = make_reproduction()
    for row, value in zip(result["rows"], (54.62, 40.5, 41.0), strict=False):
        row["published"] = value
    found = read_reproduction(result).rows[:3]
    assert published_decimals(found) == 2  # 54.62
    assert published_decimals(found[2:]) == 0  # 41.0 may have been 41
    assert published_decimals([]) == 0


def test_the_runs_are_drawn_with_published_values_and_their_cost_is_listed(runs: list[RunSummary]) -> None:
    page = render_reproduction(make_reproduction(n_clients=(10,)), runs)
    assert page.count(">published</text>") > 0 and "<h2>Cost</h2>" in page
    assert 'href="./fpdgd-n_clients%3D10/report.html"' in page
    checker = Checker()
    checker.feed(page)
    assert checker.open == []


def test_published_values_are_few_per_user_and_equal_ones_share_a_line() -> None:
    result = make_reproduction(n_clients=tuple(range(10, 70, 10)))
    lines, n_left_out = published_lines(read_reproduction(result))
    assert [(line.label, line.click) for line in lines] == [
        ("published clients 10 and 5 more", user) for user in ("perfect", "navigational", "informational")
    ]
    assert n_left_out == 0
    for i, row in enumerate(result["rows"]):
        row["published"] = 0.4 + 0.001 * i
    lines, n_left_out = published_lines(read_reproduction(result))
    assert len(lines) == 3 * MAX_REFERENCES and n_left_out == 3 * (6 - MAX_REFERENCES)


def test_online_values_are_not_drawn() -> None:
    result = make_reproduction()
    for row in result["rows"]:
        row["metric"] = "online/nDCG@10"
    assert published_lines(read_reproduction(result)) == ([], 0)


def test_several_data_sets_get_labels_and_charts_of_their_own(tmp_path: Path) -> None:
    result = make_reproduction(n_clients=(10,))
    result["data"] = {"name": "mq2008-like, mslr-like", "wanted": "mq2008, mslr-web10k", "is_stand_in": True}
    result["rows"] = [row | {"data": "mq2008"} for row in result["rows"][:1]] + result["rows"][1:2]
    one = from_directory(make_run(tmp_path / "one", n_evaluations=2))
    other = from_directory(make_run(tmp_path / "other", n_evaluations=2))
    other.data["name"] = "mslr-like"  # type: ignore[index]
    text = text_of(render_reproduction(result, [one, other]))
    assert "shaped like MQ2008, not" in text and "shaped like MSLR-WEB10K, not" in text
    assert "Learning curves on mq2008-like" in text and "Learning curves on mslr-like" in text
    found = read_reproduction(result)
    assert [line.click for line in published_lines(found, data="mq2008-like")[0]] == ["perfect"]


def test_a_figure_without_numbers_findings_and_runs_says_so() -> None:
    text = text_of(render_reproduction(make_reproduction(n_clients=()) | {"findings": [], "runs": []}))
    assert "prints no numbers here" in text and "no conclusion from it" in text and "Cost" not in text


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((2, 0, 0, 0), "Of 2 findings 2 held."),
        ((0, 0, 1, 1), "Of 2 findings 0 held, 1 did not and 1 was not judged."),
        ((1, 2, 1, 0), "Of 4 findings 1 held, 2 held in part and 1 did not."),
        ((1, 0, 0, 0), "The one finding held."),
        ((0, 1, 0, 0), "The one finding held in part."),
        ((0, 0, 1, 0), "The one finding did not hold."),
        ((0, 0, 0, 1), "The one finding was not judged."),
    ],
)
def test_findings_are_counted_in_words(counts: tuple[int, int, int, int], text: str) -> None:
    assert findings_text(FindingCounts(*counts)) == text


def test_what_held_in_part_has_a_word_of_its_own() -> None:
    part = {"claim": "Both rankers learn", "holds": None, "p": 0.01, "why": "Held for linear; mlp not run."}
    made = make_reproduction()
    result = made | {"findings": [*made["findings"], part]}
    page = text_of(render_reproduction(result))
    assert "Of 4 findings 1 held, 1 held in part, 1 did not and 1 was not judged." in page
    assert "½ held in part" in reproduction_text(result)
    assert "held in part" not in reproduction_text(made)


def test_the_terminal_shows_findings_and_numbers() -> None:
    text = reproduction_text(make_reproduction())
    findings, numbers, notes = text.split("\n\n")
    assert len(findings.split("\n")) == 1 + 3 and len(numbers.split("\n")) == 1 + 9
    assert "✗ not held" in findings and ".410 ± .006" in numbers and "\u2212.013" in numbers
    assert (
        "The same in all rows: data mslr-web10k" in notes and "Published values are for the real MSLR-WEB10K" in notes
    )
    out = io.StringIO()
    Console(file=out, width=220).print(reproduction_table(make_reproduction()))
    assert "✗ not held" in out.getvalue() and ".410 ± .006" in out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_terminal_breaks_no_word_and_no_number_at_any_width(width: int) -> None:
    result = make_reproduction()
    result["rows"][0]["metric"] = "train/MaxRR"  # one column more
    for i, row in enumerate(result["rows"]):
        row["data"], row["method"] = "mslr-web10k" if i % 2 else "mq2008", "foltr-es"
    out = io.StringIO()
    Console(file=out, width=width).print(reproduction_table(result))
    lines = out.getvalue().split("\n")
    assert max(map(len, lines)) <= width
    shown = set(re.split(r"[\s,;:]+", out.getvalue()))
    assert shown >= {"mslr-web10k", "navigational", "informational", ".410", ".006", ".423", "\u2212.013", "published"}


def test_one_training_has_no_spread_and_the_reader_is_told() -> None:
    result = make_reproduction()
    for row in result["rows"]:
        row |= {"std": None, "n": 1}
    told = "One training has no spread: for one, run more folds or more --repeats."
    assert told in reproduction_text(result) and told in text_of(render_reproduction(result))
    assert told not in reproduction_text(make_reproduction())
    assert told not in reproduction_text(result | {"runs": []})  # computed, not trained


def test_the_terminal_copes_with_nothing() -> None:
    nothing = make_reproduction(n_clients=()) | {"findings": []}
    out = io.StringIO()
    Console(file=out).print(reproduction_table(nothing))
    assert reproduction_text(nothing) == "" and not out.getvalue().strip()


def test_names_from_outside_are_escaped() -> None:
    hostile = "<script>x"
    result = make_reproduction() | dict.fromkeys(("number", "paper", "shows", "note", "when"), hostile)
    result |= {"aliases": [hostile], "runs": [hostile], "changes": {hostile: hostile}}
    result["rows"][0] |= {hostile: hostile, "why": hostile}
    result["findings"][0] |= {"claim": hostile, "where": hostile, "why": hostile}
    result["data"] = {"name": hostile, "wanted": "<b>", "is_stand_in": True}
    page = render_reproduction(result)
    assert hostile not in page and "<B>" not in page and "&lt;script&gt;x" in page


@pytest.mark.parametrize(("change", "message"), [({"format": 9}, "newer hushrank"), ({"rows": None}, "is damaged")])
def test_a_damaged_result_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        render_reproduction(make_reproduction() | change)


def test_data_sets_are_spelt_as_their_makers_do(tmp_path: Path) -> None:
    assert [real_name(name) for name in ("mslr-web10k", "mq2007", "yahoo", "istella-s")] == [
        "MSLR-WEB10K", "MQ2007", "Yahoo", "Istella-S",
    ]  # fmt: skip
    assert write_reproduction(make_reproduction(), tmp_path / "page.html").is_file()
