"""Published tables and figures rerun: ours beside theirs, and whether each claim holds."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hushrank.data.catalog import CATALOG
from hushrank.files import Json, JsonObject, refuse_newer, write_json
from hushrank.recipes.checks import OF_OFFLINE
from hushrank.recipes.options import list_options
from hushrank.recipes.population import clients_of
from hushrank.recipes.recipe import KEYS, Recipe, change_recipe, hash_recipe
from hushrank.reports.index import write_index
from hushrank.reports.reproduction import write_reproduction
from hushrank.reports.reproduction_summary import FindingCounts, count_findings, read_finding
from hushrank.reports.summary import from_directory
from hushrank.reproduce.diverged import WHY, is_diverged, make_worst
from hushrank.reproduce.literature import Claim, PublishedResult, PublishedRow, published_results
from hushrank.reproduce.named import PAPERS, REPRODUCTIONS, find_reproduction
from hushrank.reproduce.reproduction import (
    POPULATION,
    DataChoice,
    Reproduction,
    ReproductionSize,
    Trial,
    choose_data,
)
from hushrank.reproduce.rows import beside, is_meant, join_populations, join_variants, measure, subtract
from hushrank.reproduce.singles import list_singles, write_singles
from hushrank.reproduce.verdicts import Finished, NotJudged, Trials
from hushrank.runs.environment import now
from hushrank.runs.forget_methods import check_forgetting, hash_forgetting
from hushrank.runs.forgetting import ForgetRequest
from hushrank.runs.pool import Job, PoolOptions, run_jobs

FORMAT = 1


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    """How reproductions are carried out."""

    out: Path = Path("runs/reproduce")
    data: Path | None = None  # real data; None: stand-ins
    scale: ReproductionSize = ReproductionSize()  # noqa: RUF009 - frozen
    changes: Mapping[str, object] | None = None  # recipe keys to change in every trial
    fresh: bool = False  # begin again instead of continuing
    only: Mapping[str, object] = field(default_factory=dict)  # run those trials alone whose cells have these entries


@dataclass(frozen=True, slots=True)
class Prepared:
    """A reproduction with its trials made and checked."""

    result: PublishedResult
    reproduction: Reproduction
    data: tuple[DataChoice, ...]
    trials: tuple[Trial, ...]
    directory: Path

    @property
    def jobs(self) -> list[Job]:
        """One of each trial, then the runs in which some forget and that are no trials themselves.

        Runs are kept beside all results: figures that share a trial share its run.
        """
        runs = self.directory.parent / "runs"
        jobs = [make_job(trial, runs) for trial in self.trials]
        there = {job.directory for job in jobs}
        needed = {job.forgets.run: Job(job.recipe, job.forgets.run) for job in jobs if job.forgets is not None}
        return [*jobs, *(job for place, job in needed.items() if place not in there)]

    @property
    def labels(self) -> list[str]:
        """Of the jobs."""
        known = [trial_label(trial) for trial in self.trials]
        return known + [f"{job.directory.name} (to forget in)" for job in self.jobs[len(known) :]]


def prepare(name: str, options: ReproduceOptions) -> Prepared:
    """Everything that can be refused is refused here."""
    result, reproduction = find_reproduction(name)
    data = choose_data(result.data, options.data)
    trials = [trial for choice in data for trial in reproduction.trials(choice, options.scale)]
    trials = choose_trials(result.name, trials, options.only)
    data = tuple(choice for choice in data if not trials or any(t.cell["data"] == choice.label for t in trials))
    if reproduction.compute is not None and (options.changes or options.only):
        raise ValueError(f"{result.name} is computed without a recipe: leave --set and --only out.")
    check_changes(result.name, trials, options.changes or {})
    trials = [replace(trial, recipe=change_trial(trial, options.changes or {})) for trial in trials]
    for trial in trials:
        if trial.forgetting is not None:
            check_forgetting(trial.forgetting, clients_of(trial.recipe), keep_every=trial.recipe.keep_every)
    return Prepared(result, reproduction, data, tuple(trials), options.out / variant_name(result.name, options))


def choose_trials(name: str, trials: Sequence[Trial], only: Mapping[str, object]) -> list[Trial]:
    """Those whose cells have these entries; refuses entries that no trial has."""
    found = [t for t in trials if all(key in t.cell and t.cell[key] == value for key, value in only.items())]
    if trials and not found:
        wanted = ", ".join(f"{key}={value}" for key, value in only.items())
        keys = dict.fromkeys(key for trial in trials for key in trial.cell)
        there = {key: dict.fromkeys(str(t.cell[key]) for t in trials if key in t.cell) for key in keys}
        known = "; ".join(f"{key}={', '.join(values)}" for key, values in there.items() if len(values) > 1)
        fixed = "".join(tell_fixed(trials, key, value) for key, value in only.items() if key not in keys)
        raise ValueError(f"no run of {name} has {wanted}. Its runs differ in {known or 'nothing'}.{fixed}")
    return found


def tell_fixed(trials: Sequence[Trial], key: str, value: object) -> str:
    """What to do about a recipe key that no trial varies: nothing where all have the value, otherwise `--set`."""
    if key not in KEYS:
        return ""
    if all(getattr(trial.recipe, key) == value for trial in trials):
        return f" All of them have {key}={value}: leave it out of --only."
    return f" To run all of them with {key}={value}, write --set {key}={value}."


def check_changes(name: str, trials: Sequence[Trial], changes: Mapping[str, object]) -> None:
    """Refuse to change what trials differ in: their rows would name one value and have run another."""
    is_several = len({trial.cell[POPULATION] for trial in trials if POPULATION in trial.cell}) > 1
    for key in changes:
        if (key != "data" or is_several) and any(key in trial.cell for trial in trials):
            raise ValueError(f"{key} is what the runs of {name} differ in. Leave it out of --set.")


def change_trial(trial: Trial, changes: Mapping[str, object]) -> Recipe:
    """A baseline trained on labels takes what it knows of, and leaves what is about clicks."""
    of_clicks = {*KEYS, *list_options()} - set(OF_OFFLINE) if trial.recipe.is_offline else set()
    return change_recipe(trial.recipe, {key: value for key, value in changes.items() if key not in of_clicks})


def variant_name(name: str, options: ReproduceOptions) -> str:
    """The directory: the result's name, and what was done otherwise than by default."""
    other = {
        "data": None if options.data is None else str(options.data.resolve()),
        "changes": dict(options.changes or {}),
        "seed": options.scale.seed,
        "repeats": options.scale.repeats,
    }
    quick = "-quick" if options.scale.quick else ""
    if other == {"data": None, "changes": {}, "seed": 0, "repeats": None} and not options.only:
        return f"{name}{quick}"
    other |= {"only": dict(options.only)} if options.only else {}
    return f"{name}{quick}-{hashlib.sha256(json.dumps(other, sort_keys=True).encode()).hexdigest()[:8]}"


def trial_directory(trial: Trial) -> str:
    """The same recipe, the same name, whichever figure asks for it."""
    how = trial.forgetting
    words = f"{trial.recipe.recipe if how is None else how.method}-{trial.cell['data']}"
    also = "" if how is None else f"-{hash_forgetting(how)}"
    return f"{re.sub(r'[^a-z0-9.]+', '-', words.lower()).strip('-')}-{hash_recipe(trial.recipe)}{also}"


def make_job(trial: Trial, runs: Path) -> Job:
    """A trial in a directory of its own below `runs`."""
    directory = runs / trial_directory(trial)
    if trial.forgetting is None:
        return Job(trial.recipe, directory)
    run = runs / trial_directory(replace(trial, forgetting=None))
    return Job(trial.recipe, directory, ForgetRequest(run, trial.forgetting))


def trial_label(trial: Trial) -> str:
    return " ".join(str(value) for value in trial.cell.values())


def reproduce(prepared: Prepared, options: ReproduceOptions, pool: PoolOptions) -> Json:
    """Run what has not been run; the result as JSON, also in the directory's result.json and report.html."""
    began = time.monotonic()
    jobs = prepared.jobs
    for place in (prepared.directory, *(job.directory for job in jobs)):
        if options.fresh and place.exists():
            shutil.rmtree(place)
    prepared.directory.mkdir(parents=True, exist_ok=True)
    errors = run_jobs(jobs, pool)
    failed = [
        (label, error)
        for label, job, error in zip(prepared.labels, jobs, errors, strict=True)
        if error and not is_diverged(job.recipe, error)
    ]
    if failed:
        raise ValueError(
            f"{prepared.result.name}: {failed[0][0]} failed: {failed[0][1].rstrip('.')} ({len(failed)} of {len(jobs)} "
            "runs failed). What has finished is kept; repeat the command to run the rest."
        )
    trained = zip(prepared.trials, jobs[: len(prepared.trials)], strict=True)
    outcome = Trials(tuple(finish(prepared, *each) for each in trained))
    found = describe(prepared, outcome, options, began=began)
    write_singles(prepared.directory, prepared.result.name, found.pop("singles"))
    write_json(prepared.directory / "result.json", found)
    runs = [from_directory(job.directory) for job in jobs if job.is_finished]
    write_reproduction(found, prepared.directory / "report.html", runs=runs)
    write_index(index_lines(options.out), options.out / "index.html", papers=PAPERS)
    return found


def finish(prepared: Prepared, trial: Trial, job: Job) -> Finished:
    """What a run found; where it ended without a result, it diverged."""
    if job.is_finished:
        return Finished(trial.cell, job.directory, json.loads((job.directory / "result.json").read_text()))
    choice = next(choice for choice in prepared.data if choice.label == trial.cell["data"])
    metrics = prepared.reproduction.metrics or (prepared.result.metric,)
    return Finished(trial.cell, job.directory, make_worst(trial, choice, metrics))


def describe(prepared: Prepared, outcome: Trials, options: ReproduceOptions, *, began: float) -> Json:
    """The result as JSON, with `singles` in it. began: by `time.monotonic`."""
    result = prepared.result
    names = ", ".join(choice.label for choice in prepared.data)
    wanted = [choice.name for choice in prepared.data if choice.is_stand_in]
    found = make_results(prepared, outcome, options.scale)
    note = found.pop("note", "")
    return {
        "format": FORMAT,
        "name": result.name,
        "aliases": list(result.aliases),
        "paper": result.paper,
        "number": number_of(result.name),
        "shows": result.shows,
        "metric": result.metric,
        "data": {
            "name": names,
            "wanted": ", ".join(wanted or result.data),
            "is_stand_in": any(choice.is_stand_in for choice in prepared.data),
        },
        "quick": options.scale.quick,
        "changes": dict(options.changes or {}),
        "only": dict(options.only),
        "limits": " ".join(tell_limits(prepared.reproduction, options)),
        "note": " ".join(filter(None, [result.note, *doubts(prepared, outcome), *tell_populations(outcome), note])),
        "published_code": prepared.reproduction.published_code,
        **found,
        "runs": [f"../runs/{job.directory.name}" for job in prepared.jobs if job.is_finished],
        "when": now(),
        "seconds": round(time.monotonic() - began, 1),
    }


def tell_limits(reproduction: Reproduction, options: ReproduceOptions) -> list[str]:
    """What a reader of the result must not conclude from it."""
    said = [reproduction.quick_limits] if options.scale.quick and reproduction.quick_limits else []
    chosen = ", ".join(f"{key}={value}" for key, value in options.only.items())
    return [*said, f"Only the runs with {chosen}: claims are judged on these alone."] if chosen else said


def make_results(prepared: Prepared, outcome: Trials, scale: ReproductionSize) -> Json:
    """Rows, findings and single users, from the trials or by computing them; what is computed may have a note."""
    if prepared.reproduction.compute is None:
        findings = [judge(prepared.reproduction, claim, outcome) for claim in prepared.result.findings]
        singles = list_singles(outcome, prepared.reproduction.singles)
        return {"rows": make_rows(prepared, outcome), "findings": findings, "singles": singles}
    found = prepared.reproduction.compute(prepared.data, scale)
    exact = {"metric": prepared.result.metric, "why": "", "std": None, "n": 1}
    rows = [{**exact, **row, "difference": subtract(row["ours"], row["published"])} for row in found["rows"]]
    also = {"note": found.get("note", ""), "singles": found.get("singles", [])}
    return {"rows": rows, "findings": found["findings"], **also}


def doubts(prepared: Prepared, outcome: Trials) -> list[str]:
    """Whether a directory holds what its name says: over all folds, every query is tested once."""
    said = []
    for choice in prepared.data:
        whole = CATALOG.get(choice.name)
        own = [t.result for t in outcome.finished if t.cell["data"] == choice.label and not t.is_diverged]
        if whole is None or choice.is_stand_in or whole.n_folds == 1:
            continue
        if not own or own[0]["recipe"]["folds"] is not None:
            continue
        n_queries = own[0]["data"]["n_test_queries"]
        if n_queries != whole.n_queries:
            said.append(f"{choice.source} has {n_queries:,} queries, {whole.title} has {whole.n_queries:,}.")
    return said


def tell_populations(outcome: Trials) -> list[str]:
    """That values are those of generated populations, where they are."""
    seeds = sorted({trial.cell[POPULATION] for trial in outcome.finished if POPULATION in trial.cell})
    if not seeds:
        return []
    return [
        f"Users were generated from seed {', '.join(map(str, seeds))}: values are those of populations, and tests pair "
        "what two models reach for the same user."
    ]


def number_of(name: str) -> str:
    """`Figure 4` of `fpdgd.figure4`."""
    word, number = re.fullmatch(r"[^.]+\.(table|figure)([\d.]+)", name).groups()  # type: ignore[union-attr] # checked
    return f"{word.capitalize()} {number}"


def make_rows(prepared: Prepared, outcome: Trials) -> list[Json]:
    """Ours, each beside the published number of the same cell; then the published numbers that we have not run."""
    result, rows = prepared.result, list[Json]()
    used: set[int] = set()
    real = {choice.label: choice.name for choice in prepared.data}
    metrics = prepared.reproduction.metrics or {result.metric: {}}
    for trial in outcome.finished:
        why = WHY if trial.is_diverged else ""
        for name, more in metrics.items():
            for user in trial.users:
                cell = {**trial.cell, "clicks": user, **more}
                meant = {**cell, "data": real[trial.cell["data"]]}
                near = [i for i, row in enumerate(result.rows) if is_meant(row, meant, name, metrics)]
                measured = measure(prepared.reproduction, trial, user, name)
                used.update(near if measured else ())
                published = result.rows[near[0]].published if near else None
                if measured is not None:
                    rows.append({**cell, **beside(measured, published), "metric": name, "why": why})
    rows += [
        {
            **row.cell,
            **beside(None, row.published),
            "metric": published_metric(prepared.reproduction, row),
            "why": why_missing(row, real),
        }
        for i, row in enumerate(result.rows)
        if i not in used
    ]
    return join_variants(join_populations(rows))


def published_metric(reproduction: Reproduction, row: PublishedRow) -> str:
    """What a published number measures: of the splits of one table, each is a metric of ours."""
    metrics = reproduction.metrics or {}
    return next((name for name, more in metrics.items() if more and more.items() <= row.cell.items()), row.metric)


def why_missing(row: PublishedRow, real: Mapping[str, str]) -> str:
    """Why there is no number of ours beside a published one."""
    data = row.cell.get("data")
    if data is not None and data not in real.values():
        return f"not run on {data}"
    return "not a trial of ours"


def judge(reproduction: Reproduction, claim: Claim, outcome: Trials) -> Json:
    """One claim with its verdict, or why it has none."""
    said = {"id": claim.id, "claim": claim.claim, "where": claim.where}
    try:
        return {**said, **reproduction.findings[claim.id](outcome).as_json()}
    except NotJudged as reason:
        return {**said, **reason.as_json()}
    except ValueError as error:  # Why: of the test, such as one result that has no spread; the other claims stand
        return {**said, **NotJudged(f"Could not be judged: {error}").as_json()}


def index_lines(out: Path) -> list[Json]:
    """A line per published result, with what was found where it has been rerun."""
    return [index_line(result, out) for result in published_results().values()]


def index_line(result: PublishedResult, out: Path) -> Json:
    line = {
        "name": result.name,
        "paper": result.paper,
        "number": number_of(result.name),
        "shows": result.shows,
        "data": list(result.data),
    }
    variants = [(read, place.name) for place in sorted(out.glob(f"{result.name}*")) if (read := read_found(place))]
    variants = [(read, place) for read, place in variants if read["name"] == result.name]
    found, page = max(variants, key=lambda variant: best_first(variant[0]), default=(None, ""))
    if found is None:
        can_run = result.name in REPRODUCTIONS
        why = f"hushrank reproduce {result.name}" if can_run else f"needs {', '.join(result.needs) or 'a recipe'}"
        nothing = FindingCounts(not_judged=len(result.findings))._asdict()
        rest = {"page": None, "is_stand_in": False, "quick": False, "when": None}
        return {**line, "state": "not run", **nothing, "why": why, **rest}
    return {
        **line,
        "state": "run",
        **count_findings([read_finding(finding) for finding in found["findings"]])._asdict(),
        "why": changed_text(found),
        "page": f"{page}/report.html",
        "is_stand_in": found["data"]["is_stand_in"],
        "quick": found["quick"],
        "when": found["when"],
    }


def best_first(found: JsonObject) -> tuple[bool, bool, bool, str]:
    """Of several variants the index shows one: nothing changed, whole, on real data, the last."""
    return (
        not found["changes"] and not found.get("only"),
        not found["quick"],
        not found["data"]["is_stand_in"],
        str(found["when"]),
    )


def changed_text(found: JsonObject) -> str:
    changed = [f"{key}={value}" for key, value in found["changes"].items()]
    return ", ".join([*changed, *(f"only {key}={value}" for key, value in found.get("only", {}).items())])


def read_found(directory: Path) -> Json | None:
    """What a reproduction wrote; None where it has not run."""
    path = directory / "result.json"
    if not path.is_file():
        return None
    try:
        found: Json = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}). Remove {directory} and run again.") from error
    refuse_newer(directory, found.get("format", FORMAT), FORMAT)
    return found
