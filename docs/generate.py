"""Write what follows from code and measurements: the reference pages, and the tables on other pages.

    .venv/bin/python docs/generate.py            write them
    .venv/bin/python docs/generate.py --check    exit with 1 when one of them is stale

The reference pages are made from the commands' parameters rather than from the text of `--help`, whose layout changes
with the version of the library that prints it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from compatible import describe_compatibility
from import_graph import fill_architecture
from measured import fill_page

from hushrank.cli.main import app
from hushrank.keys import Key, describe_kinds, keys_of, method_keys
from hushrank.look.assets import stylesheet
from hushrank.recipes import recipe as recipes
from hushrank.recipes.checks import OF_OFFLINE
from hushrank.recipes.rooms import CHOOSERS, ROOMS
from hushrank.reproduce.listing import list_results
from hushrank.reproduce.named import PAPERS

DOCS = Path(__file__).parent
HERE = DOCS / "reference"
MEASURED = (
    "aggregation.md",
    "audit.md",
    "data.md",
    "findings.md",
    "howto/differ.md",
    "howto/forget.md",
    "howto/personalised-search.md",
    "howto/query-privacy.md",
    "howto/which-rule.md",
    "live.md",
    "private_training.md",
    "reconstruction.md",
    "secure_sum.md",
)  # pages with measured tables
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
    names = ", ".join(f"`{name}`" for name in recipes.NAMED)
    parts = [
        NOTE,
        "# Recipe keys",
        f"The recipes are {names}. A key may stand in a TOML file, in `--set key=value` or in "
        "`hushrank.run(recipe, key=value)`; [Write a recipe](../howto/recipe.md) shows each way. In a file a key may "
        "also stand in the table of its section below, by its own name or by the one in parentheses. Rankers [trained "
        f"on labels](../howto/labels.md) know only {', '.join(f'`{key}`' for key in OF_OFFLINE)}.",
        describe_keys([recipes.KEYS["recipe"]]),
    ]
    for table, room in ROOMS.items():
        parts += [f"## Table `[{table}]`", describe_keys(keys_of(room).values()), *describe_options(table)]
    return "\n\n".join([*parts, describe_compatibility()]) + "\n"


def describe_options(table: str) -> list[str]:
    """The keys of registered methods."""
    rows = [
        replace(key, help=f"{chooser}={method}: {key.help}")
        for chooser, declared in CHOOSERS.items()
        if chooser in keys_of(ROOMS[table])
        for method in declared.methods or ()
        for key in method_keys(declared.methods or {}, method).values()
    ]
    return ["Only for one of them:", describe_keys(rows)] if rows else []


def describe_keys(keys: Iterable[Key]) -> str:
    header = ["| key | meaning | type | default |", "| --- | --- | --- | --- |"]
    return "\n".join(header + [describe_key(key) for key in keys])


def describe_key(key: Key) -> str:
    name = f"`{key.name}`" + (f" (`{key.alias}`)" if key.alias else "")
    kind = re.sub(r"\b(an?|one or more) ", "", describe_kinds(key))
    return f"| {name} | {escape(key.help)} | {escape(kind)} | {escape(describe_default(key))} |"


def describe_default(key: Key) -> str:
    """One value, or one for each recipe where they differ; a ranker from labels has only the keys that it knows."""
    if key.name == "recipe":
        return "must be given"
    knowing = {n: r for n, r in recipes.NAMED.items() if not r.is_offline or key.name in OF_OFFLINE}
    values = {name: getattr(recipe, key.name, key.default) for name, recipe in knowing.items()}
    shown = {name: show_default(value) for name, value in values.items()}
    if len(set(shown.values())) == 1:
        return next(iter(shown.values()))
    return ", ".join(f"{name} {value}" for name, value in shown.items() if value)


def show_default(value: object) -> str:
    if value is None or value == {}:
        return ""
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"


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
    today = "runs" if result["can_run"] else result["why_not"]
    return f"| {names} | {escape(result['shows'])} | {', '.join(result['data']) or 'none'} | {escape(today)} |"


def escape(text: str) -> str:
    """Safe in a table's cell: bars would end it, and what looks like a tag would vanish."""
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
