"""The words of a report: what runs are called, and what came out, in sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

from hushrank.look.numbers import format_count, format_spread
from hushrank.reports.summary import Metric, RunSummary

OFFLINE, VALI, ONLINE = "offline/nDCG@10", "vali/nDCG@10", "online/nDCG@10"
PER_SEARCH = "online/nDCG@10 per search"  # the mean over searches, where a sum over rounds would compare lengths
METRICS = {OFFLINE: "test nDCG@10", VALI: "validation nDCG@10", ONLINE: "online nDCG@10"}  # what people call them
PERSONAL = "personal/nDCG@10"  # of each client's own ranker, by its own labels
# Of runs that may be of unequal length, or whose clients differ
COMPARED = {**METRICS, PER_SEARCH: "online nDCG@10 per search", PERSONAL: "personal nDCG@10"}


@dataclass(frozen=True, slots=True)
class Measures:
    """What runs of one kind are judged by: nDCG@10 of rankers, MAP of personalised search."""

    name: str = "nDCG@10"

    @property
    def offline(self) -> str:
        return f"offline/{self.name}"

    @property
    def vali(self) -> str:
        return f"vali/{self.name}"

    @property
    def is_usual(self) -> bool:
        """Whether there are simulated users, who see lists while a ranker learns and whose queries have grades."""
        return self.offline == OFFLINE

    @property
    def words(self) -> dict[str, str]:
        """{metric: what people call it}, in the order of a table."""
        return METRICS if self.is_usual else {self.offline: f"test {self.name}", self.vali: f"validation {self.name}"}

    @property
    def compared(self) -> dict[str, str]:
        """The same of runs that may be of unequal length, or whose clients differ."""
        return COMPARED if self.is_usual else self.words

    def under(self, click: str) -> str:
        """Whose quality it is, after a number: of simulated users there are several."""
        return f" under the {click} user" if self.is_usual else ""

    def heading(self, click: str) -> str:
        return f"The {click} user" if self.is_usual else "Users of the log"


def measures_of(runs: Sequence[RunSummary]) -> Measures:
    """Those of the first run, which the others are compared with."""
    return Measures(runs[0].primary.removeprefix("offline/")) if runs else Measures()


_NOT_A_NAME = re.compile(r"-\d[\dTZ:_-]*-[0-9a-f]{4,}$")  # the end of a directory that nobody chose: -<time>-<hash>


def run_labels(runs: Sequence[RunSummary]) -> list[str]:
    """A short name for each run, all different: the directory's if a person chose it, else recipe and what differs."""
    labels = [run.name if not _NOT_A_NAME.search(run.name) else _recipe_label(run, runs) for run in runs]
    if len(set(labels)) < len(labels):
        labels = [run.name if labels.count(label) > 1 else label for run, label in zip(runs, labels, strict=True)]
    repeated = {label for label in labels if labels.count(label) > 1}
    return [f"{label} ({i + 1})" if label in repeated else label for i, label in enumerate(labels)]


def click_models(runs: Sequence[RunSummary]) -> list[str]:
    """Every simulated user of any run, in the order in which they first appear."""
    return list(dict.fromkeys(click for run in runs for click in run.metrics))


def title(labels: Sequence[str]) -> str:
    """What the page is about."""
    return join_words(labels) if len(labels) <= 3 and sum(map(len, labels)) < 60 else f"{len(labels)} runs compared"


def summary_sentences(runs: Sequence[RunSummary], labels: Sequence[str], *, searches: int | None = None) -> str:
    """The outcome in one or two sentences; `searches`: after how many each run was measured, None at its end."""
    return _one_run(runs[0]) if len(runs) == 1 else _several_runs(runs, labels, searches=searches)


def n_rankers(run: RunSummary) -> int:
    """How many rankers a run trained: users x folds x repeats."""
    return sum(len(next(iter(named.values())).values) for named in run.metrics.values() if named)


def n_values_text(metric: Metric | None) -> str:
    """How many results a mean stands on: `5 folds × 5 repeats`."""
    if metric is None or not metric.values:
        return ""
    folds, repeats = {v.fold for v in metric.values}, {v.repeat for v in metric.values}
    if len(folds) * len(repeats) != len(metric.values):
        return count_text(len(metric.values), "run")
    return f"{count_text(len(folds), 'fold')} × {count_text(len(repeats), 'repeat')}"


def setting_text(value: object) -> str:
    """A recipe's value as a person would write it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, list | tuple):
        return ", ".join(setting_text(part) for part in value) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {setting_text(part)}" for key, part in value.items()) or "none"
    return str(value)


def date_text(started: str | None) -> str:
    """An exact date for people, in UTC; an unknown form stays as it is."""
    if not started:
        return ""
    try:
        moment = datetime.fromisoformat(started)
    except ValueError:
        return started
    if moment.tzinfo is None:
        return f"{moment.day} {moment:%B %Y, %H:%M}"
    moment = moment.astimezone(UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def join_words(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1] if words else "")))


def some_of(words: Sequence[str], *, n: int = 5) -> str:
    """a, b and 48 more: the first n, or all if that is hardly longer."""
    return join_words(words if len(words) <= n + 1 else [*words[:n], f"{len(words) - n} more"])


def count_text(n: int, noun: str) -> str:
    """1 run, 2 runs, 3 entries."""
    nouns = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else nouns}"


def metric_text(name: str) -> str:
    """A metric as people call it: `test nDCG@10` for `offline/nDCG@10`."""
    return COMPARED.get(name, name.replace("offline/", "test ").replace("vali/", "validation ").replace("/", " "))


def _recipe_label(run: RunSummary, runs: Sequence[RunSummary]) -> str:
    recipe = str(run.recipe.get("recipe", run.name))
    family = [other.recipe for other in runs if other.recipe.get("recipe") == run.recipe.get("recipe")]
    differing = [
        key for key in run.recipe if key != "clicks" and any(other.get(key) != run.recipe[key] for other in family)
    ]
    return " ".join([recipe, *(f"{key}={setting_text(run.recipe[key])}" for key in differing[:2])])


def _one_run(run: RunSummary) -> str:
    n_clients = run.recipe.get("n_clients")
    n_clients = n_clients - len(run.forgetting["clients"]) if n_clients and run.forgetting else n_clients
    clients = f" by {format_count(n_clients)} clients" if isinstance(n_clients, int) and n_clients > 1 else ""
    n, measures = n_rankers(run), measures_of([run])
    searches = format_count(run.n_interactions / n) if run.n_interactions and n else ""
    learnt = f"{'Each' if n > 1 else 'The'} ranker learnt from {searches} searches{clients}" if searches else ""
    learnt += f" on {run.data['name']}. " if learnt and run.data.get("name") else ". " if learnt else ""
    reached = [
        f"{format_spread(named[run.primary].mean, named[run.primary].std)}{measures.under(click)}"
        for click, named in run.metrics.items()
        if run.primary in named
    ]
    return learnt + (f"On test queries the {measures.name} is {join_words(reached)}." if reached else "")


def _several_runs(runs: Sequence[RunSummary], labels: Sequence[str], *, searches: int | None) -> str:
    best: list[tuple[str, str, str]] = []  # run, whose, value
    measures = measures_of(runs)
    for click in click_models(runs):
        named = [run.metrics.get(click, {}) for run in runs]
        found = [(each.get(measures.offline), label) for each, label in zip(named, labels, strict=True)]
        known = [(metric, label) for metric, label in found if metric is not None and isfinite(metric.mean)]
        if known:
            metric, label = max(known, key=lambda pair: pair[0].mean)
            best.append((label, measures.under(click), format_spread(metric.mean, metric.std)))
    data = {str(run.data["name"]) for run in runs if run.data.get("name")}
    where = f" on {data.pop()}" if len(data) == 1 else ""
    length = "" if searches is None else f" of unequal length, compared up to {format_count(searches)} searches each"
    length = length if searches != 0 else " of unequal length, without curves to compare them by"
    outcome = f"{count_text(len(runs), 'run')}{where}{length}. {_highest(best, measures.name)}"
    return f"{outcome} Significance tests are below."


def _highest(best: Sequence[tuple[str, str, str]], name: str) -> str:
    if not best:
        return "None of them has a result on test queries."
    if len({label for label, _, _ in best}) == 1:
        values = join_words([f"{value}{whose}" for _, whose, value in best])
        return f"{best[0][0]} has the highest {name} on test queries: {values}."
    each = join_words([f"{label}{whose} ({value})" for label, whose, value in best])
    return f"The highest {name} on test queries: {each}."
