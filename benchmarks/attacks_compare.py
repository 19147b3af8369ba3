"""Is one rule as good as the best for every attack? Judged from what `python -m benchmarks.attacks` wrote.

    python -m benchmarks.attacks_compare attacks.json [more.json ...] [--rule watchful] [--json verdict.json]
        [--peace peace.json]

In peace: two one-sided tests within .002 of plain averaging, for every user; from a file with more trainings of that
alone where one is named. Under attack, at every share up to 30 %:
for each attack the best other rule is chosen on validation queries (mean over users and shares; rules that are not
defined at one of the shares are no candidates); a cell (attack, share, user) passes when the mean test nDCG@10 is at
most .005 below that rule's. At least 90 % of the cells must pass. No cell may be significantly worse than plain
averaging by more than .005: paired one-sided t-tests over trainings, p corrected for the number of cells (Bonferroni).
Five repeats give 25 trainings. A verdict to which a cell is missing (the rule, plain averaging or a rule that could be
the best was not run there) is not judged. Verdicts are about the attacks that were run; those of
`benchmarks/attack_list.py` that were not are named. Ends with 1 unless all verdicts hold; failing and missing cells are
listed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.attack_list import OTHERS, THESIS
from hushrank.files import Json, read_json, write_json
from hushrank.look.numbers import format_p, format_signed
from hushrank.metrics.significance import bonferroni, equivalence_test, paired_t_test
from hushrank.reports.attack_matrix import MEAN, PEACE, Matrix, MatrixLine, read_matrix

PEACE_MARGIN, MARGIN, ENOUGH, LEVEL = 0.002, 0.005, 0.9, 0.05
JUDGED, MOST_SHARE = "watchful", 30.0  # unless another rule, another largest share of malicious clients is named


def judge_rule(matrix: Matrix, rule: str, *, most_share: float = MOST_SHARE, peaceful: Matrix | None = None) -> Json:
    """All verdicts on one rule; None: not judged. peaceful: where nobody lies, if more trainings of that are kept."""
    peace = judge_peace(matrix if peaceful is None else peaceful, rule)
    cells = judge_cells(matrix, rule, most_share=most_share)
    missing = find_missing(matrix, rule, most_share=most_share)
    n_near = sum(cell["is_near"] for cell in cells)
    is_whole = bool(cells) and not missing
    known = [cell["p_worse_than_mean"] for cell in cells if cell["p_worse_than_mean"] is not None]
    return {
        "rule": rule,
        "n_trainings": count_trainings(matrix, rule),
        "peace": peace,
        "peace_holds": hold_all([found["p"] for found in peace]),
        "missing": missing,
        "attacks_not_run": list_not_run(matrix),
        "n_cells": len(cells),
        "n_near": n_near,
        "share_near": n_near / len(cells) if cells else None,
        "near_holds": n_near >= ENOUGH * len(cells) if is_whole else None,
        "n_lower_than_mean": sum((cell["over_mean"] or 0.0) < -MARGIN for cell in cells),
        "n_worse_than_mean": sum(p < LEVEL for p in known),
        "worse_holds": min(known) >= LEVEL if is_whole and len(known) == len(cells) else None,
        "cells": cells,
    }


def hold_all(ps: Sequence[float | None]) -> bool | None:
    """Whether every p is small; None where one is not known, or there is none."""
    known = [p for p in ps if p is not None]
    return all(p < LEVEL for p in known) if known and len(known) == len(ps) else None


def count_trainings(matrix: Matrix, rule: str) -> int:
    return max(
        (len(v) for (_, name), cell in matrix.cells.items() if name == rule for v in cell.test.values()), default=0
    )


def judge_peace(matrix: Matrix, rule: str) -> list[Json]:
    """Equal to plain averaging within the margin, for each user; p is None where one of the two was not run."""
    found = []
    for user in matrix.users:
        ours, theirs = (matrix.test(MatrixLine(PEACE, 0), name, user) for name in (rule, MEAN))
        test = None if ours is None or theirs is None else equivalence_test(ours, theirs, margin=PEACE_MARGIN)
        difference, p = (None, None) if test is None else (round(test.mean_difference, 5), test.p)
        found.append({"user": user, "n": len(ours or ()), "difference": difference, "p": p})
    return found


def group_lines(matrix: Matrix, most_share: float) -> list[list[MatrixLine]]:
    """What is judged, attack by attack."""
    lines = [line for line in matrix.lines if line.attack != PEACE and line.share <= most_share]
    attacks = dict.fromkeys(line.attack for line in lines)
    return [[line for line in lines if line.attack == attack] for attack in attacks]


def choose_rivals(matrix: Matrix, rule: str, *, most_share: float = MOST_SHARE) -> dict[str, str]:
    """{attack: the best other rule by validation queries}"""
    found = {lines[0].attack: matrix.choose_rule(lines, without=[rule]) for lines in group_lines(matrix, most_share)}
    return {attack: best for attack, best in found.items() if best is not None}


def find_missing(matrix: Matrix, rule: str, *, most_share: float) -> list[Json]:
    """Cells without which nobody can say how the rule compares: its own, plain averaging's, and those of rules that
    were run at another share of the attack and might have been the best."""
    found = []
    for lines in group_lines(matrix, most_share):
        for name in dict.fromkeys([rule, MEAN, *matrix.rules]):
            cells = [matrix.cells[line, name] for line in lines if (line, name) in matrix.cells]
            is_rival = bool(cells) and all(cell.test for cell in cells)  # one that is not defined somewhere is none
            absent = [line for line in lines if not has_run(matrix, line, name)]
            if name in (rule, MEAN) or is_rival:
                found += [{"attack": line.attack, "share": line.share, "rule": name} for line in absent]
    return found


def list_not_run(matrix: Matrix) -> list[str]:
    """Attacks under which rules are usually measured, and of which the matrix has nothing."""
    known = {line.attack for line in matrix.lines}
    return [attack for attack in (*THESIS, *OTHERS) if attack not in known]


def has_run(matrix: Matrix, line: MatrixLine, rule: str) -> bool:
    return all(matrix.test(line, rule, user) for user in matrix.users)


def judge_cells(matrix: Matrix, rule: str, *, most_share: float) -> list[Json]:
    """Every attack, share and user that the rule and its rivals were run with."""
    cells = []
    for group in group_lines(matrix, most_share):
        lines = [line for line in group if has_run(matrix, line, rule)]
        best = matrix.choose_rule(lines, without=[rule]) if lines else None
        cells += [judge_cell(matrix, rule, best, line, user) for line in lines if best for user in matrix.users]
    known = [cell["p_worse_than_mean"] for cell in cells if cell["p_worse_than_mean"] is not None]
    corrected = iter(bonferroni(known))
    for cell in cells:
        if cell["p_worse_than_mean"] is not None:
            cell["p_worse_than_mean"] = next(corrected)
    return cells


def judge_cell(matrix: Matrix, rule: str, best: str, line: MatrixLine, user: str) -> Json:
    """p is that of being worse than plain averaging by more than the margin, not corrected."""
    ours, theirs, plain = (matrix.test(line, name, user) for name in (rule, best, MEAN))
    assert ours is not None and theirs is not None  # a candidate is defined in every line; the rule was run
    behind = fmean(ours) - fmean(theirs)
    return {
        **{"attack": line.attack, "share": line.share, "user": user, "best": best},
        "difference": round(behind, 5),
        "is_near": behind >= -MARGIN,
        "over_mean": None if plain is None else round(fmean(ours) - fmean(plain), 5),
        "p_worse_than_mean": None if plain is None else one_sided_p(ours, plain),
    }


def one_sided_p(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Small where ours is lower by more than the margin."""
    test = paired_t_test([value + MARGIN for value in ours], theirs)
    return test.p / 2 if test.mean_difference < 0 else 1 - test.p / 2


def describe(found: Json) -> str:
    """The verdicts, and every cell that fails, in lines."""
    word = {True: "holds", False: "does not hold", None: "not judged"}
    peace = "; ".join(f"{p['user']} {describe_difference(p['difference'])}" for p in found["peace"])
    far = [cell for cell in found["cells"] if not cell["is_near"]]
    worse = [c for c in found["cells"] if c["p_worse_than_mean"] is not None and c["p_worse_than_mean"] < LEVEL]
    lines = [
        f"{found['rule']}, {found['n_trainings']} trainings in each cell",
        f"peace within {PEACE_MARGIN:g} of {MEAN}, {found['peace'][0]['n']} trainings: {word[found['peace_holds']]} "
        f"({peace})",
        f"within {MARGIN:g} of the chosen rule: {found['n_near']} of {found['n_cells']} cells, at least "
        f"{ENOUGH:.0%} wanted: {word[found['near_holds']]}",
        f"significantly worse than {MEAN} by more than {MARGIN:g}: {len(worse)} cells, {found['n_lower_than_mean']} by "
        f"their means alone: {word[found['worse_holds']]}",
        *(f"  further from the chosen rule: {describe_cell(cell)}" for cell in far),
        *(f"  worse than {MEAN}: {describe_cell(cell)}" for cell in worse),
        *(f"  missing: {cell['attack']} {cell['share']:g} % {cell['rule']}" for cell in found["missing"]),
        *(f"  attack not run, so that nothing is said of it: {attack}" for attack in found["attacks_not_run"]),
    ]
    return "\n".join(lines)


def describe_difference(difference: float | None) -> str:
    return "not run" if difference is None else format_signed(difference, decimals=4)


def describe_cell(cell: Json) -> str:
    against = f"{format_signed(cell['difference'], decimals=4)} against {cell['best']}"
    over = "" if cell["over_mean"] is None else f", {format_signed(cell['over_mean'], decimals=4)} against {MEAN}"
    p = "" if cell["p_worse_than_mean"] is None else f" (p {format_p(cell['p_worse_than_mean'])})"
    return f"{cell['attack']} {cell['share']:g} % {cell['user']}: {against}{over}{p}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--rule", default=JUDGED)
    parser.add_argument("--most-share", type=float, default=MOST_SHARE, help="per cent malicious clients")
    parser.add_argument("--peace", type=Path, help="a file with more trainings in which nobody lies")
    parser.add_argument("--json", type=Path, help="where to write the verdicts")
    chosen = parser.parse_args(arguments)
    matrix, peaceful = read_matrix(*map(read_json, chosen.files)), None
    if chosen.peace is not None:
        peaceful = read_matrix(read_json(chosen.peace))
    found = judge_rule(matrix, chosen.rule, most_share=chosen.most_share, peaceful=peaceful)
    if chosen.json:
        write_json(chosen.json, found)
    print(describe(found))
    return int(not (found["peace_holds"] and found["near_holds"] and found["worse_holds"]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ValueError as error:
        print(f"attacks_compare: {error}", file=sys.stderr)
        sys.exit(2)
