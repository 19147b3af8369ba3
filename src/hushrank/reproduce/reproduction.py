"""A table or figure of a paper as something that runs: its trials, and a test for each of its claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hushrank.data.catalog import CATALOG, explain_getting
from hushrank.data.intents import find_intents
from hushrank.data.layout import find_folds
from hushrank.data.load import find_ignoring_case, load_dataset
from hushrank.data.recognise import name_directory, recognise_set
from hushrank.data.shapes import shape_named
from hushrank.files import Json, JsonObject
from hushrank.personal.spool import SpooledPopulation, is_spooled
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.reproduce.verdicts import Cell, Finished, Trials, Values, Verdict
from hushrank.runs.forget_methods import Forgetting

STAND_INS = {
    "mq2007": "mq2007-like",
    "mq2008": "mq2008-like",
    "mslr-web10k": "mslr-like",
    "mslr-web30k": "mslr-like",
    "yahoo": "yahoo-like",
    "istella-s": "istella-like",
    "intent-change": "intent-change-like",
    "aol": "aol-like",
    "commercial": "commercial-like",
}
POPULATION = "population"  # in a cell: the seed of the generated users, over which rows are means
PUBLISHED_CODE = "published-code"  # `variant` in a cell: as the published code does it; its numbers stand beside ours
_QUICK_QUERIES = {"intent-change-like": 60}  # of large stand-ins


@dataclass(frozen=True, slots=True)
class DataChoice:
    """The data that trials run on."""

    name: str  # the catalogue's, or the directory's
    source: str  # what a recipe's `data` says
    is_stand_in: bool
    n_folds: int = 5

    @property
    def label(self) -> str:
        """What results are said to be on: never the real set's name for a stand-in."""
        return self.source if self.is_stand_in else self.name

    @property
    def is_large(self) -> bool:
        """Sets beyond LETOR have protocols of their own."""
        return not self.name.lower().startswith("mq")

    @property
    def normalise(self) -> str | None:
        """As in the published runs; stand-ins are generated as they should be."""
        return None if self.is_stand_in or self.name not in CATALOG else CATALOG[self.name].normalise

    @property
    def n_intents(self) -> int:
        """0 where a document has the same grade for all."""
        return shape_named(self.source).n_intents if self.is_stand_in else len(find_intents(Path(self.source)))

    @property
    def n_grades(self) -> int:
        """Of the whole set; reads a directory that the catalogue does not know."""
        if self.is_stand_in:
            return shape_named(self.source).n_grades
        return CATALOG[self.name].n_grades if self.name in CATALOG else load_dataset(self.source).n_grades


@dataclass(frozen=True, slots=True)
class ReproductionSize:
    """How large a reproduction is."""

    quick: bool = False
    repeats: int | None = None  # default: five, as published; two when quick
    seed: int = 0

    def shared(self, data: DataChoice) -> Json:
        """Recipe keys of every trial: the papers' three users, every fold, five repeats; quick: two of each."""
        quick = {"folds": tuple(range(1, min(data.n_folds, 2) + 1)), "repeats": 2} if self.quick else {"repeats": 5}
        wanted = {} if self.repeats is None else {"repeats": self.repeats}
        return {"clicks": ("perfect", "navigational", "informational"), **quick, **wanted, "seed": self.seed}


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a reproduction."""

    cell: Cell  # what is special about it, in the words of the published rows
    recipe: Recipe
    forgetting: Forgetting | None = None  # what is forgotten in the run of this recipe; None: it is that run


@dataclass(frozen=True, slots=True)
class Reproduction:
    """How a published result is rerun."""

    name: str  # of a published result
    trials: Callable[[DataChoice, ReproductionSize], list[Trial]] = lambda _data, _scale: []
    findings: Mapping[str, Callable[[Trials], Verdict]] = field(default_factory=dict)  # by the claim's id
    metrics: Mapping[str, Cell] | None = None  # ours, with what each adds to the cell; default: the published one
    read: Callable[[Finished, str, str], Values] | None = None  # of a trial, a user and a metric; default: at the end
    singles: Sequence[str] = ()  # metrics of single generated users to keep beside the result, as runs name them
    # {"rows", "findings"} of a table that needs no runs, and perhaps a "note" and "singles"
    compute: Callable[[Sequence[DataChoice], ReproductionSize], JsonObject] | None = None
    compute_seconds: tuple[float, float] = (0.0, 0.0)  # of one core, whole and quick
    quick_limits: str = ""  # what its quick version cannot show, in a sentence
    published_code: str = ""  # what `variant` in a cell stands for, in words


def make_trial(data: DataChoice, scale: ReproductionSize, name: str, cell: Cell, **changes: object) -> Trial:
    """A named recipe on this data, with changes; `cell` in the words of the published rows."""
    source = data.source
    if scale.quick and data.is_stand_in and data.is_large:
        source = f"{source}:n_queries={_QUICK_QUERIES.get(source, 500)}"
    shared = scale.shared(data)
    if NAMED[name].is_offline:
        shared.pop("repeats")  # labels are not drawn
    recipe = change_recipe(NAMED[name], {"data": source, "normalise": data.normalise, **shared, **changes})
    return Trial({"data": data.label, "method": name, **cell}, recipe)


def choose_data(wanted: tuple[str, ...], directory: Path | None) -> tuple[DataChoice, ...]:
    """The real sets in `directory` (one set, or a folder of sets under their names); without it the stand-ins."""
    if directory is None:
        return tuple(DataChoice(name, STAND_INS[name], is_stand_in=True) for name in wanted if name in STAND_INS)
    if is_spooled(directory):
        return (real_data(SpooledPopulation(directory).name, directory),)
    if is_data_set(directory):
        return (real_data(recognise_set(directory) or name_directory(directory), directory),)
    return tuple(real_data(name, find_in(directory, name, wanted)) for name in wanted)


def real_data(name: str, directory: Path) -> DataChoice:
    n_folds = 1 if is_spooled(directory) else len(find_folds(directory))
    return DataChoice(name, str(directory), is_stand_in=False, n_folds=n_folds)


def is_data_set(directory: Path) -> bool:
    if not directory.is_dir():
        raise ValueError(f"{directory} is not a directory. Name one that holds a data set, or several by their names.")
    try:
        return bool(find_folds(directory))
    except FileNotFoundError:
        return False


def find_in(directory: Path, name: str, wanted: tuple[str, ...]) -> Path:
    found = find_ignoring_case(directory, name)
    if found is None:
        others = [other for key in wanted if (other := find_ignoring_case(directory, key)) is not None]
        alone = f" To run on what is there alone: --data {others[0]}" if others else ""
        where = str(directory / name)
        how = explain_getting(name, where=where) if name in CATALOG else f"Read such a log into {where} first."
        raise ValueError(f"{directory} has no {name}. {how}{alone}")
    return found
