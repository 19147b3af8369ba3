"""Write what follows from code and measurements: the reference pages, and the tables on other pages.

    .venv/bin/python docs/generate.py            write them
    .venv/bin/python docs/generate.py --check    exit with 1 when one of them is stale

The reference pages are made from the commands' parameters rather than from the text of `--help`, whose layout changes
with the version of the library that prints it.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from compatible import describe_compatibility
from import_graph import fill_architecture
from measured import fill_page

from hushrank.cli.main import app
from hushrank.look.assets import stylesheet
from hushrank.recipes import recipe as recipes
from hushrank.reproduce.reproduce import PAPERS, list_results

DOCS = Path(__file__).parent
HERE = DOCS / "reference"
MEASURED = ("findings.md", "private_training.md", "reconstruction.md")  # pages with measured tables
NOTE = "<!-- Written by docs/generate.py. Change the code, then run it again. -->"


def main(arguments: list[str]) -> int:
    pages = {
        HERE / "commands.md": describe_commands(),
        HERE / "recipe.md": describe_recipe(),
        HERE / "published.md": describe_published(),
        DOCS / "chart.css": describe_charts(),
    }
    pages |= {DOCS / page: fill_page((DOCS / page).read_text(encoding="utf-8")) for page in MEASURED}
    layout = DOCS / "architecture.md"
    pages[layout] = fill_architecture(layout.read_text(encoding="utf-8"))
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"docs/{path.relative_to(DOCS)} is stale: run docs/generate.py and commit what it writes.")
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages[path], encoding="utf-8")
        print(f"docs/{path.relative_to(DOCS)}")
    return 0


def describe_charts() -> str:
    """`chart.css`: how every page of hushrank draws charts."""
    rules = stylesheet().partition("/* Charts")[2].partition("@media print")[0]
    return f"/* Written by docs/generate.py from src/hushrank/look/look.css. */\n/* Charts{rules.rstrip()}\n"


def describe_commands() -> str:
    """`reference/commands.md`"""
    root: Any = typer.main.get_command(app)
    parts = [NOTE, "# Commands", root.help.strip(), *describe_parameters(root, "hushrank COMMAND")]
    parts.append(
        "These stand before the command: `hushrank --debug run fpdgd`. `hushrank --install-completion` teaches the "
        "shell to complete commands and options. Every command answers `--help`."
    )
    for name, command in walk_commands(root, "hushrank"):
        parts += [f"## {name}", command.help.strip()]
        parts += describe_parameters(command, name) if not hasattr(command, "commands") else []
    return "\n\n".join(parts) + "\n"


def walk_commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """(full name, command), each group before its commands."""
    for name, command in group.commands.items():
        yield f"{prefix} {name}", command
        if hasattr(command, "commands"):
            yield from walk_commands(command, f"{prefix} {name}")


def describe_parameters(command: Any, name: str) -> list[str]:
    """The usage line, and a table of arguments and options."""
    words = [name, *(name_argument(p) for p in command.params if p.param_type_name == "argument")]
    has_options = any(p.param_type_name == "option" for p in command.params)
    ours = [p for p in command.params if not p.name.endswith("_completion")]  # Why: those are the library's words
    rows = [f"| {name_parameter(p)} | {describe_parameter(p)} |" for p in ours]
    table = ["\n".join(["| parameter | meaning |", "| --- | --- |", *rows])] if rows else []
    return ["    " + " ".join([*words, *(["[OPTIONS]"] if has_options else [])]), *table]


def name_argument(parameter: Any) -> str:
    word = parameter.metavar or parameter.name.upper()
    return word if parameter.required or word.startswith("[") else f"[{word}]"


def name_parameter(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`".replace("|", "\\|")
    value = "" if parameter.is_flag else " " + (parameter.metavar or "VALUE")
    return ", ".join(f"`{option}{value}`" for option in parameter.opts).replace("|", "\\|")


def describe_parameter(parameter: Any) -> str:
    text = (getattr(parameter, "help", None) or "").strip()
    is_told = parameter.default is None or parameter.required or getattr(parameter, "is_flag", False)
    default = (
        "" if is_told or callable(parameter.default) or parameter.default == () else f"Default: `{parameter.default}`."
    )
    return escape(" ".join(part for part in (text, default) if part))


def describe_recipe() -> str:
    """`reference/recipe.md`"""
    comments = read_comments(Path(recipes.__file__).read_text(encoding="utf-8"), "Recipe")
    names = ", ".join(f"`{name}`" for name in recipes.NAMED)
    parts = [
        NOTE,
        "# Recipe keys",
        f"The recipes are {names}. A key may stand in a TOML file, in `--set key=value` or in "
        "`hushrank.run(recipe, key=value)`; [Write a recipe](../howto/recipe.md) shows each way. Rankers [trained on "
        f"labels](../howto/labels.md) know only {', '.join(f'`{key}`' for key in recipes.OF_OFFLINE)}.",
    ]
    header = ["| key | meaning | type | default |", "| --- | --- | --- | --- |"]
    table = "\n".join(header + [describe_key(key, comments[key]) for key in recipes.KEYS])
    return "\n\n".join([*parts, table, describe_compatibility()]) + "\n"


def describe_key(key: str, found: tuple[str, str]) -> str:
    kind, comment = found
    allowed = [value for value in recipes._CHOICES.get(key, ()) if value is not None]
    if allowed and not all(value in comment for value in allowed):
        comment = re.sub(r":? ?or \S+$", "", comment)  # Why: a comment such as "or mlp" continues the default
        comment = f"{comment}: " + " or ".join(f"`{value}`" for value in allowed)
    return f"| `{key}` | {escape(comment)} | {escape(describe_kind(kind))} | {escape(describe_default(key))} |"


def describe_kind(kind: str) -> str:
    words = {"str": "word", "int": "whole number", "float": "number", "bool": "true or false", "ClickTables": "table"}
    words |= {"tuple[int, ...]": "list of whole numbers", "tuple[str, ...]": "list of words"}
    return " or ".join(words.get(part, part) for part in kind.split(" | ") if part != "None")


def describe_default(key: str) -> str:
    """One value, or one for each recipe where they differ; a ranker from labels has only the keys that it knows."""
    knowing = {n: r for n, r in recipes.NAMED.items() if not r.is_offline or key in recipes.OF_OFFLINE}
    values = {name: getattr(recipe, key) for name, recipe in knowing.items()}
    if key == "recipe":
        return "must be given"
    shown = {name: "" if value is None or value == {} else f"`{value}`" for name, value in values.items()}
    if len(set(shown.values())) == 1:
        return next(iter(shown.values()))
    return ", ".join(f"{name} {value}" for name, value in shown.items() if value)


def read_comments(source: str, class_name: str) -> dict[str, tuple[str, str]]:
    """{field: (annotation, comment on its lines)} of a dataclass, from its source."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    on_line = {t.start[0]: t.string.lstrip("# ").strip() for t in tokens if t.type == tokenize.COMMENT}
    tree = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == class_name)
    found = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            comment = " ".join(on_line[line] for line in lines if line in on_line)
            found[node.target.id] = (ast.unparse(node.annotation), comment)
    return found


def describe_published() -> str:
    """`reference/published.md`"""
    results = list_results()
    n_run = sum(result["can_run"] for result in results)
    parts = [
        NOTE,
        "# Published results",
        f"Tables and figures of the papers, and what each asks. `hushrank reproduce NAME` runs {n_run} of these "
        f"{len(results)} today; [Rerun a published result](../howto/reproduce.md) says how. What a paper prints and "
        "claims is kept in `src/hushrank/reproduce/published/`.",
    ]
    for paper, title in PAPERS.items():
        rows = [describe_result(result) for result in results if result["paper"] == paper]
        header = ["| name | what it shows | data | today |", "| --- | --- | --- | --- |"]
        parts += [f"## {title}", "\n".join(header + rows)]
    return "\n\n".join(parts) + "\n"


def describe_result(result: dict[str, Any]) -> str:
    names = " = ".join(f"`{name}`" for name in (result["name"], *result["aliases"]))
    without = f", without {result['left_out']}" if result["left_out"] else ""
    today = f"runs{without}" if result["can_run"] else result["why_not"]
    return f"| {names} | {escape(result['shows'])} | {', '.join(result['data']) or 'none'} | {escape(today)} |"


def escape(text: str) -> str:
    """Safe in a table's cell: bars would end it, and what looks like a tag would vanish."""
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
