"""`hushrank data`: list, info, check, convert, make, log, import-aol, import-aol4foltr, cache."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from hushrank.files import JsonObject

app = typer.Typer(
    help="Data sets and click logs: list, look at, check, convert, generate.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Source = Annotated[
    str, typer.Argument(metavar="NAME|DIR", help="Synthetic set (tiny), public set (mq2008) or directory.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Normalise = Annotated[str | None, typer.Option(help="none, query-minmax or standard.")]
Seed = Annotated[int, typer.Option(help="Of a generated set.")]


@app.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """Show the shapes and populations that can be generated, and the public sets with where they are."""
    import dataclasses

    from hushrank.data.catalog import CATALOG
    from hushrank.data.load import find_public
    from hushrank.data.shapes import SHAPES
    from hushrank.personal.shapes import POPULATIONS

    shapes = [{"name": name, **dataclasses.asdict(shape)} for name, shape in SHAPES.items()]
    populations = [{"name": name, **dataclasses.asdict(shape)} for name, shape in POPULATIONS.items()]
    found = {name: find_public(name) for name in CATALOG}
    public = [
        {"name": name, "found": None if found[name] is None else str(found[name]), **dataclasses.asdict(entry)}
        for name, entry in CATALOG.items()
    ]
    if as_json:
        print(json.dumps({"shapes": shapes, "populations": populations, "catalogue": public}))
        return
    _print_table("Generated shapes", shapes, ("name", "n_queries", "mean_length", "longest", "n_features"))
    columns = ("name", "n_users", "n_documents", "n_candidates", "weeks", "background_weeks")
    _print_table("Generated populations, for personalised search", populations, columns)
    _print_table("Public data sets", public, ("name", "found", "n_queries", "n_documents", "n_features", "normalise"))
    if None in found.values():
        _tell("How to get one that is not found: hushrank data info NAME")


@app.command()
def info(source: Source, as_json: AsJson = False, normalise: Normalise = None, seed: Seed = 0) -> None:
    """Show queries, documents, list lengths and grades of each split; licence and origin of a public set.

    Of a generated population or a log of users: searches, lists and clicks of each period, measured on its first users.
    """
    import dataclasses

    from hushrank.data.catalog import CATALOG
    from hushrank.data.load import load_dataset
    from hushrank.data.summary import summarise_dataset
    from hushrank.personal.population import is_population
    from hushrank.personal.spool import is_spooled

    if is_population(source):
        _show_population(source, seed=seed, as_json=as_json)
        return
    if is_spooled(Path(source)):
        _show_log(Path(source), as_json=as_json)
        return
    dataset = load_dataset(source, normalise=normalise, seed=seed, progress=_tell)
    splits = summarise_dataset(dataset)
    about = {key: getattr(dataset, key) for key in ("name", "n_features", "n_grades", "normalise", "fingerprint")}
    entry = CATALOG.get(source.lower())
    if as_json:
        print(json.dumps({**about, "catalogue": entry and dataclasses.asdict(entry), "splits": splits}))
        return
    title = f"{dataset.name}: {dataset.n_features} features, {dataset.n_grades} grades, normalise {dataset.normalise}"
    _print_table(title, splits, tuple(splits[0]))
    if entry is not None:
        print(f"{entry.title}. {entry.licence} {entry.page}")


@app.command()
def check(
    source: Source,
    known_as: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            help="The public set it should be, or none; default: by its name or what it is like.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read every file: the first problem of each, counts that are not as published, features that need care.

    Of a log of users: whether it is as it was read, and how many users, searches and documents it has.
    """
    from hushrank.data.check import check_files
    from hushrank.personal.spool import is_spooled

    if is_spooled(Path(source)):
        _check_log(source, known_as, as_json=as_json)
        return
    found = check_files(source, known_as=known_as)
    if as_json:
        lists = {
            "problems": list(found.problems),
            "notes": list(found.notes),
            "warnings": [notice._asdict() for notice in found.notices],
        }
        print(json.dumps({"source": source, "as": found.compared_with, **lists}))
    else:
        good = f"{source}: no problems."
        if found.compared_with is not None:
            but = ", but for these notes:" if found.notes else "."
            good = f"{source}: no problems; the counts are those of {found.compared_with}{but}"
        notices = [notice.line for notice in found.notices]
        print("\n".join([*(found.problems or [good]), *(f"note: {note}" for note in found.notes), *notices]))
    if found.problems:
        raise typer.Exit(1)


@app.command()
def convert(
    source: Source,
    out: Annotated[Path, typer.Option(help="The directory to write.")],
    to: Annotated[str, typer.Option(help="letor, qrels, or run (TREC; ranked by --feature).")] = "letor",
    feature: Annotated[int | None, typer.Option(help="Of a run: rank by this feature, counted from 1.")] = None,
    normalise: Normalise = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Write a data set as FoldN/{train,vali,test} in another format; document ids are kept."""
    from hushrank.data.export import check_destination, check_format, write_dataset
    from hushrank.data.load import load_dataset

    check_format(to, feature)
    check_destination(out)
    dataset = load_dataset(source, normalise=normalise, keep_document_ids=True, seed=seed, progress=_tell)
    files = write_dataset(dataset, out, form=to, feature=feature, progress=_tell)
    print(json.dumps({"out": str(out), "to": to, "files": files}) if as_json else out)


@app.command()
def make(
    shape: Annotated[str, typer.Argument(help="A shape of `hushrank data list`.")],
    destination: Path,
    seed: Seed = 0,
    changes: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change the shape.")] = None,
    as_json: AsJson = False,
) -> None:
    """Generate a data set and write it as LETOR text, FoldN/{train,vali,test}.txt."""
    from hushrank.data.export import check_destination, write_dataset
    from hushrank.data.load import load_dataset
    from hushrank.data.shapes import shape_named
    from hushrank.personal.population import is_population

    if is_population(shape):
        raise ValueError(
            f"{shape} is a population, whose users are made when a run asks for them: nothing is written. "
            f"Look at it with hushrank data info {shape}."
        )
    name = f"{shape}:{','.join(changes)}" if changes else shape
    shape_named(name)
    check_destination(destination)
    files = write_dataset(load_dataset(name, seed=seed, progress=_tell), destination, progress=_tell)
    print(json.dumps({"out": str(destination), "to": "letor", "files": files}) if as_json else destination)


@app.command()
def log(
    data: Annotated[str, typer.Option(help="Synthetic set (tiny), public set (mq2008) or directory.")],
    out: Annotated[Path, typer.Option(help="The file to write, JSON Lines.")],
    clicks: Annotated[str, typer.Option(help="How people click, such as perfect or navigational.")] = "navigational",
    impressions: Annotated[int, typer.Option(help="Lists shown in all.")] = 20_000,
    clients: Annotated[int, typer.Option(help="People who search, in turn.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the searches; same seed, same log.")] = 0,
    fold: Annotated[int, typer.Option(help="Its training queries are searched for.")] = 1,
    ranker: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="An exported ranker; default: lists in random order.")
    ] = None,
    normalise: Annotated[str | None, typer.Option(help="Default: the ranker's, else the catalogue's.")] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate people who search and click, and write the log, to try learning from logs."""
    from hushrank.runs.click_log import LogRequest, make_log

    request = LogRequest(data, clicks, impressions, clients, seed, fold, ranker, normalise)
    with _counting(f"logging {data}", impressions) as progress:
        about = make_log(request, out, tell=_tell, progress=progress)
    if as_json:
        print(json.dumps({"file": str(out), **about}))
    else:
        counts = ("n_impressions", "impressions of"), ("n_queries", "queries,"), ("n_clicks", "clicks")
        print(f"{out}:", *(f"{about[key]:,} {noun}" for key, noun in counts))


Out = Annotated[Path, typer.Option(help="A new directory, which only its owner can read.")]


@app.command("import-aol")
def import_aol_log(
    files: Annotated[list[Path], typer.Argument(help="user-collection-01.txt, ..., plain, gzip or xz.")],
    titles: Annotated[Path, typer.Option(help="Titles of the documents: URL, tab, title.")],
    out: Out,
    least_background: Annotated[int, typer.Option(help="Searches before 3 April that a user needs.")] = 5,
    least_train: Annotated[int, typer.Option(help="Searches before 16 May that a user needs.")] = 5,
    most_searches: Annotated[int, typer.Option(help="Users with more are dropped.")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Read the AOL log of 2006 for personalised search. These are real people's queries: publish nothing of it."""
    from hushrank.personal.aol import AolSettings, import_aol

    settings = AolSettings(least_background, least_train, most_searches)
    with _counting("reading", None, "lines") as hear:
        _, counts = import_aol(files, titles, out, settings=settings, hear=hear)
    _show_import(out, counts.as_json(), as_json=as_json)


@app.command("import-aol4foltr")
def import_aol4foltr_log(
    metadata: Annotated[Path, typer.Argument(help="metadata.csv, plain, gzip or xz.")],
    titles: Annotated[Path, typer.Option(help="Titles of the documents: AOL-IA document id, tab, title.")],
    out: Out,
    as_json: AsJson = False,
) -> None:
    """Read AOL4FOLTR for personalised search. These are real people's queries: publish nothing of it."""
    from hushrank.personal.aol4foltr import import_aol4foltr

    with _counting("reading", None, "rows") as hear:
        _, counts = import_aol4foltr(metadata, titles, out, hear=hear)
    _show_import(out, counts.as_json(), as_json=as_json)


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove every entry.")] = False, as_json: AsJson = False
) -> None:
    """Show where the cache is, its size and its entries, or clear it."""
    import dataclasses

    from hushrank.data.cache import cache_root, clear_cache, list_entries
    from hushrank.reports.wording import count_text

    freed = clear_cache() if clear else 0
    entries = [dataclasses.asdict(entry) for entry in list_entries()]
    n_bytes = sum(entry["n_bytes"] for entry in entries)
    if as_json:
        where = str(cache_root())
        print(json.dumps({"where": where, "n_bytes": n_bytes, "n_bytes_freed": freed, "entries": entries}))
        return
    print(
        f"{cache_root()}: {count_text(len(entries), 'entry')}, {n_bytes / 1e6:.1f} MB"
        + (f"; {freed / 1e6:.1f} MB freed" * clear)
    )
    if entries:
        _print_table("Entries", entries, ("source", "n_bytes"))


def _show_population(name: str, *, seed: int, as_json: bool) -> None:
    from hushrank.personal.population import population_named
    from hushrank.personal.summary import summarise_population

    population = population_named(name, seed=seed)
    about = {key: getattr(population, key) for key in ("name", "description", "n_users")}
    periods = summarise_population(population)
    if as_json:
        print(json.dumps({**about, "n_documents": population.collection.n_documents, "periods": periods}))
        return
    _print_table(f"{population.name}: {population.description}", periods, tuple(periods[0]))


def _show_log(directory: Path, *, as_json: bool) -> None:
    from hushrank.personal.spool import SpooledPopulation
    from hushrank.personal.summary import describe_log, summarise_population

    population = SpooledPopulation(directory)
    about, periods = describe_log(population), summarise_population(population)
    if as_json:
        print(json.dumps({**about, "periods": periods}))
        return
    _print_table(f"{directory}: {_say_log(about)}", periods, tuple(periods[0]))


def _check_log(source: str, known_as: str | None, *, as_json: bool) -> None:
    from hushrank.personal.spool import SpooledPopulation
    from hushrank.personal.summary import describe_log

    if known_as is not None:
        raise ValueError(f"{source} is a log of users, and --as names a set with lists and grades: leave it out.")
    population = SpooledPopulation(Path(source))
    problems = population.find_problems()
    about = {} if problems else describe_log(population)
    if as_json:
        print(
            json.dumps({"source": source, "as": None, "problems": problems, "notes": [], "warnings": [], "log": about})
        )
    else:
        print("\n".join(problems or [f"{source}: no problems; {_say_log(about)}."]))
    if problems:
        raise typer.Exit(1)


def _say_log(about: JsonObject) -> str:
    counts = f"{about['n_searches']:,} searches with a click, {about['n_documents']:,} documents"
    return f"{about['description']}, {counts}, {about['first_search']} to {about['last_search']}"


def _show_import(out: Path, counts: JsonObject, *, as_json: bool) -> None:
    """Where the log is, and what became of its lines."""
    if as_json:
        print(json.dumps({"out": str(out), **counts}))
        return
    print(f"{out}: {counts['n_users']:,} users, {counts['n_searches']:,} searches")
    left = {key.removeprefix("n_").replace("_", " "): n for key, n in counts.items() if isinstance(n, int) and n}
    print("; ".join(f"{words} {n:,}" for words, n in left.items() if words not in ("users", "searches")))
    if counts["first_bad_line"]:
        _tell(f"The first malformed line: {counts['first_bad_line']}")
    _tell(f"To train on it: hushrank run fedps --data {out}")


def _tell(message: str) -> None:
    print(message, file=sys.stderr)


@contextmanager
def _counting(title: str, total: int | None, noun: str = "") -> Iterator[Callable[[int], None]]:
    """Hears how many are done: a bar on a terminal, a line every ten seconds in a pipe. total: None is not known."""
    from hushrank.cli.progress import LINE_SECONDS, make_bar

    def count(done: int) -> str:
        return f"{done:,} {noun}" if total is None else f"{done:,} of {total:,}"

    if sys.stderr.isatty():
        with make_bar() as bar:
            task = bar.add_task(title, total=total, detail="")
            yield lambda done: bar.update(task, completed=done, detail=count(done))
        return
    last = time.monotonic()

    def tell_now_and_then(done: int) -> None:
        nonlocal last
        if time.monotonic() - last > LINE_SECONDS:
            last = time.monotonic()
            _tell(f"{title}: {count(done)}")

    yield tell_now_and_then


def _print_table(title: str, rows: list[Any], columns: tuple[str, ...]) -> None:
    """A table on a terminal; tab-separated lines in a pipe."""
    cells = [[_show(row[column]) for column in columns] for row in rows]
    if not sys.stdout.isatty():
        print("\n".join(["# " + title, "\t".join(columns), *("\t".join(line) for line in cells)]))
        return
    from rich.console import Console
    from rich.table import Table

    headings = [column.removeprefix("n_").replace("_", " ") for column in columns]
    table = Table(*headings, title=title, title_justify="left")
    for line in cells:
        table.add_row(*line)
    Console().print(table)


def _show(value: object) -> str:
    if isinstance(value, list):
        return " ".join(f"{item:g}" for item in value)
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
