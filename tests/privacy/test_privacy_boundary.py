"""Only `privacy/` makes what may leave a device."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np

import hushrank
from hushrank.privacy.none import GUARANTEE, send_openly
from hushrank.types import DenseUpdate, PrivateUpdate

SOURCE = Path(hushrank.__file__).parent
PRIVATE = {"PrivateUpdate", "PrivateReward", "PrivateQueries"}  # the types that may leave a device
CONTENTS = {
    "delta",
    "weight",
    "rewards",
    "guarantee",
    "texts",
    "pauses_s",
}  # of them: a copy with another is another message


def lines_that_make_one(tree: ast.Module) -> list[int]:
    """Calls of what may leave a device, by whatever name it was imported, and ways around them."""
    imported = [a for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names if a.name in PRIVATE]
    known = PRIVATE | {alias.asname for alias in imported if alias.asname}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    direct = [call for call in calls if ast.unparse(call.func).rpartition(".")[2] in known]
    passed = [c for c in calls for a in c.args if isinstance(a, ast.Name) and a.id in known and c not in direct]
    changed = [c for c in calls if _is_replace(c) and {k.arg for k in c.keywords} & CONTENTS]
    return [call.lineno for call in direct + passed + changed if ast.unparse(call.func) != "isinstance"]


def _is_replace(call: ast.Call) -> bool:
    """`dataclasses.replace`, or the method of the same name that Python 3.13 gives to dataclasses."""
    return ast.unparse(call.func).rpartition(".")[2] in ("replace", "__replace__")


def test_the_reader_finds_every_way_of_making_one() -> None:
    text = "from hushrank.types import PrivateUpdate as P\nx = P(1, 2, '')\ny = types.PrivateUpdate(1)\nz = map(P, a)"
    assert lines_that_make_one(ast.parse(text)) == [2, 3, 4]
    assert lines_that_make_one(ast.parse(text.replace("PrivateUpdate", "PrivateReward"))) == [2, 3, 4]
    assert lines_that_make_one(ast.parse("x = replace(update, delta=y)\ny = dataclasses.replace(u, rewards=())")) == [
        1,
        2,
    ]
    assert lines_that_make_one(ast.parse("def f(update: PrivateUpdate) -> list[PrivateReward]: ...")) == []


def test_only_the_privacy_room_makes_what_may_leave_a_device() -> None:
    makers = {path for path in SOURCE.rglob("*.py") if lines_that_make_one(ast.parse(path.read_text(encoding="utf-8")))}
    assert makers
    assert {path.relative_to(SOURCE).parts[0] for path in makers} == {"privacy"}


def test_an_update_sent_openly_is_itself_and_says_so() -> None:
    sent = send_openly(DenseUpdate(np.array([0.5, -1.0]), n_interactions=4))
    assert isinstance(sent, PrivateUpdate)
    assert sent.delta.tolist() == [0.5, -1.0]
    assert sent.weight == 4.0
    assert sent.guarantee == GUARANTEE and GUARANTEE.startswith("no guarantee")
