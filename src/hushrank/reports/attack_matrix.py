"""The matrix attack x rule x share of malicious clients, as `python -m benchmarks.attacks` writes it, and its page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from hushrank.files import JsonObject, refuse_newer
from hushrank.look.chart import ChartText
from hushrank.look.heat import HeatCell, HeatRow, heat_map
from hushrank.look.numbers import format_count, format_seconds, format_signed, format_spread, format_value
from hushrank.reports.markup import TableCell, csv_link, disclosure, paragraph, section, table
from hushrank.reports.shell import render_page, write_page
from hushrank.reports.wording import count_text, date_text

FORMAT = 1
PEACE, MEAN = "none", "mean"
RUN, NOT_DEFINED, DIVERGED = "run", "not defined", "diverged"
SHORT = {NOT_DEFINED: "n/d", DIVERGED: "div."}  # in a cell of the map


@dataclass(frozen=True, slots=True)
class MatrixLine:
    """What attacks a federation."""

    attack: str  # its name; with full knowledge NAME:full; or PEACE
    share: float  # per cent of the clients that are malicious

    @property
    def label(self) -> str:
        return name_attack(self.attack) + (f", {self.share:g} %" if self.share else "")


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One rule under one attack."""

    state: str  # run, not defined, or diverged: every training did, and counts as 0
    test: Mapping[str, tuple[float, ...]]  # {user: nDCG@10 of every training}, folds and repeats in the same order
    vali: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Quality by attack, share, rule and user."""

    about: JsonObject  # the settings that all cells have in common
    cells: Mapping[tuple[MatrixLine, str], MatrixCell]  # {(what attacks, rule)}

    @property
    def users(self) -> tuple[str, ...]:
        return tuple(self.about["users"])

    @property
    def lines(self) -> tuple[MatrixLine, ...]:
        return tuple(dict.fromkeys(line for line, _ in self.cells))

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(rule for _, rule in self.cells))

    def test(self, line: MatrixLine, rule: str, user: str) -> tuple[float, ...] | None:
        """None: not run, or not defined."""
        cell = self.cells.get((line, rule))
        return cell.test[user] if cell is not None and cell.test else None

    def mean_test(self, line: MatrixLine, rule: str, user: str) -> float | None:
        values = self.test(line, rule, user)
        return None if values is None else fmean(values)

    def peace(self, user: str) -> float | None:
        """The reference: plain averaging with nobody malicious."""
        return self.mean_test(MatrixLine(PEACE, 0), MEAN, user)

    def choose_rule(self, lines: Sequence[MatrixLine], *, without: Iterable[str] = ()) -> str | None:
        """The rule with the best validation quality, mean over lines and users; only those defined in every line."""
        means = {}
        for rule in (rule for rule in self.rules if rule not in set(without)):
            cells = [self.cells.get((line, rule)) for line in lines]
            if all(cell is not None and cell.vali for cell in cells):
                means[rule] = fmean(fmean(cell.vali[user]) for cell in cells if cell is not None for user in self.users)
        return max(means, key=lambda rule: means[rule]) if means else None


def read_matrix(*found: JsonObject) -> Matrix:
    """One or more files as one matrix; of cells in several the last; refuses files with different settings."""
    for each in found:
        refuse_newer("the matrix", each.get("format", FORMAT), FORMAT)
    abouts = [each["about"] for each in found]
    differing = sorted({key for about in abouts for key in about if about[key] != abouts[0].get(key)})
    if differing:
        raise ValueError(f"the files differ in {', '.join(differing)}: they are no parts of one matrix.")
    rows = sorted((row for each in found for row in each["cells"]), key=lambda row: row["attack"] != PEACE)
    return Matrix(abouts[0], {(MatrixLine(row["attack"], row["share"]), row["rule"]): read_cell(row) for row in rows})


def read_cell(row: JsonObject) -> MatrixCell:
    test, vali = ({user: tuple(values) for user, values in row.get(split, {}).items()} for split in ("test", "vali"))
    return MatrixCell(row["state"], test, vali)


def name_attack(attack: str) -> str:
    if attack == PEACE:
        return "nobody lies"
    name, _, knowledge = attack.partition(":")
    return f"{name}, {knowledge}" if knowledge else name


def matrix_map(matrix: Matrix, user: str, *, name: str) -> str:
    """The heat map of one user. `name` must be unique on the page."""
    rows = [
        HeatRow(
            name_attack(line.attack),
            f"{line.share:g} %",
            tuple(_heat_cell(matrix, line, rule, user) for rule in matrix.rules),
        )
        for line in matrix.lines
    ]
    text = ChartText(
        title=f"Test nDCG@10 of {user} users by attack, share of malicious clients and rule",
        x_title="rule",
        y_title=f"test nDCG@10, {user} users",
        empty="No cell has been run yet: python -m benchmarks.attacks",
    )
    return heat_map(rows, matrix.rules, text, name=name)


def _heat_cell(matrix: Matrix, line: MatrixLine, rule: str, user: str) -> HeatCell:
    cell, where = matrix.cells.get((line, rule)), f"{rule}, {line.label}"
    if cell is None:
        return HeatCell("", note=f"{where}: not run")
    if cell.state == NOT_DEFINED:
        return HeatCell(SHORT[NOT_DEFINED], note=f"{where}: not defined for so few clients")
    mean, peace = matrix.mean_test(line, rule, user) or 0.0, matrix.peace(user)
    distance = None if peace is None else mean - peace
    is_best = len(matrix.rules) > 1 and rule == matrix.choose_rule([line])
    if cell.state == DIVERGED:
        return HeatCell(SHORT[DIVERGED], distance, f"{where}: every training diverged, counts as 0")
    said = "" if distance is None else f", {format_signed(distance)} against plain averaging without liars"
    note = f"{where}: {cell_text(cell, user)}{said}{'; chosen on validation queries' if is_best else ''}"
    return HeatCell(format_value(mean), distance, note, is_best)


def cell_text(cell: MatrixCell, user: str) -> str:
    values = cell.test[user]
    return format_spread(fmean(values), stdev(values) if len(values) > 1 else None)


def write_matrix(found: JsonObject, path: Path) -> Path:
    """One HTML file: a heat map for each user, and all numbers with their spread."""
    matrix = read_matrix(found)
    maps = [f"<figure>{matrix_map(matrix, user, name=f'heat-{i}')}</figure>" for i, user in enumerate(matrix.users)]
    titles = [f"{user.capitalize()} users" for user in matrix.users]
    body = paragraph(describe_reading(matrix), style="note")
    body += "".join(section(title, figure) for title, figure in zip(titles, maps, strict=True))
    body += section("All numbers", *_numbers(matrix)) + section("About these runs", *map(paragraph, _about(found)))
    page = render_page(
        "Attacks and rules", body, kind="matrix", when=date_text(found.get("when")), lead=describe_matrix(matrix)
    )
    return write_page(page, path)


def describe_matrix(matrix: Matrix) -> str:
    """What it is of, and the rule that loses least at its worst."""
    if not matrix.cells:
        return "No cell has been run yet."
    attacks = {line.attack.partition(":")[0] for line in matrix.lines if line.attack != PEACE}
    against = f"{count_text(len(attacks), 'attack')} against {count_text(len(matrix.rules), 'rule')}"
    said = f"{against} on {matrix.about['data']}."
    worst = {rule: _worst(matrix, rule) for rule in matrix.rules}
    known = {rule: found for rule, found in worst.items() if found is not None}
    if not known or not attacks:
        return said
    best = max(known, key=lambda rule: known[rule][0])
    value, line, user = known[best]
    where = f"{format_signed(value)} ({line.label}, {user} users)"
    return f"{said} At its worst, {best} loses least of the rules that are defined everywhere: {where}."


def _worst(matrix: Matrix, rule: str) -> tuple[float, MatrixLine, str] | None:
    """The largest loss against plain averaging in peace; None where the rule was not run or defined everywhere."""
    found = []
    for line in matrix.lines:
        for user in matrix.users:
            mean, peace = matrix.mean_test(line, rule, user), matrix.peace(user)
            if mean is None or peace is None:
                return None
            found.append((mean - peace, line, user))
    return min(found, key=lambda each: each[0], default=None)


def describe_reading(matrix: Matrix) -> str:
    n = len(next((v for cell in matrix.cells.values() for v in cell.test.values()), ()))
    return (
        f"Each number is the mean over {count_text(n, 'training')}. Its colour is the distance from plain averaging "
        "with nobody malicious (first row, mean). The underlined rule of a row is the best on validation queries, mean "
        "over users. n/d: the rule is not defined for so many malicious clients among so few. div.: every training "
        "diverged; each that does counts as 0. An empty cell was not run. fang-trimmed-mean is also the attack on the "
        "median."
    )


def _numbers(matrix: Matrix) -> list[str]:
    headings = [TableCell(text) for text in ("attack", "share", "rule")]
    headings += [TableCell(f"{user}, test", style="number") for user in matrix.users]
    rows = list[list[TableCell]]()
    csv: list[tuple[str, ...]] = [("attack", "share", "rule", "user", "split", "mean", "std", "n")]
    for (line, rule), cell in matrix.cells.items():
        texts = [cell_text(cell, user) if cell.state == RUN else cell.state for user in matrix.users]
        first = [TableCell(name_attack(line.attack)), TableCell(f"{line.share:g} %", value=line.share), TableCell(rule)]
        means = [fmean(cell.test[user]) if cell.test else None for user in matrix.users]
        numbers = zip(texts, means, strict=True)
        rows.append([*first, *(TableCell(text, value=mean, style="number") for text, mean in numbers)])
        csv += _csv_rows(line, rule, cell)
    shown = table(headings, rows, label="Test nDCG@10 of every cell", has_tools=True)
    saved = csv_link(csv, file_name="attacks.csv", text="Save these numbers, and those on validation queries, as CSV")
    return [disclosure(f"{format_count(len(rows))} cells with their standard deviation", shown), saved]


def _csv_rows(line: MatrixLine, rule: str, cell: MatrixCell) -> list[tuple[str, ...]]:
    return [
        (
            *(line.attack, f"{line.share:g}", rule, user, split),
            *(f"{fmean(values):.5f}", f"{stdev(values) if len(values) > 1 else 0:.5f}", str(len(values))),
        )
        for split, by_user in (("test", cell.test), ("vali", cell.vali))
        for user, values in by_user.items()
    ]


def _about(found: JsonObject) -> list[str]:
    about = found["about"]
    trained = f"{count_text(about['folds'], 'fold')}, {count_text(about['repeats'], 'repeat')}"
    said = [
        f"{about['n_clients']:,} clients, {about['interactions']} searches of each in every one of {about['rounds']:,} "
        f"rounds; {trained}; FPDGD without noise, linear ranker.",
        "Rules that reckon with a number of malicious clients are told the true one; with nobody malicious they reckon "
        f"with {about['assumed']:g} % of the clients.",
    ]
    seconds = sum(row.get("seconds", 0) for row in found["cells"])
    return [*said, f"The cells took {format_seconds(seconds)} of computing in all."]
