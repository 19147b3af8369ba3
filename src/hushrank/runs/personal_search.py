"""Personalised search, federated or central, as an experiment."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hushrank.clicks.keys import LOGGED
from hushrank.engine.checkpoint import LOOK, Progress
from hushrank.engine.device import choose_platform, describe_platform, import_jax
from hushrank.engine.personal_combine import ALONE, HELD_BACK
from hushrank.engine.personal_examine import MAP, ORIGINAL
from hushrank.engine.personal_people import MOST_SCANNED, MOST_SEARCHES
from hushrank.engine.personal_schedule import count_asked, measured_spans, train_span
from hushrank.engine.personal_setting import FOLD, PARAMS, STEPS, PersonalSetting
from hushrank.engine.simulate import CellResult, Options, drive_tasks
from hushrank.engine.task import Task
from hushrank.federation.seen import SEARCHES
from hushrank.files import Json
from hushrank.personal.keys import COVER_QUERY, GROUP_USER
from hushrank.privacy.disclosure import Disclosure
from hushrank.recipes.personal_setting import count_answers, exposure_of_clients, resolve_personal
from hushrank.recipes.recipe import Recipe
from hushrank.runs.experiment import RunPlacement
from hushrank.runs.liars import foresee_liars
from hushrank.runs.notices import notice_rule
from hushrank.runs.proxy_disclosure import (
    describe_hierarchy,
    disclose_proxies,
    except_handed,
    hide_from_proxies,
    name_reader,
)
from hushrank.types import Array, NamedArrays, Notice

PRIMARY = "offline/MAP"
CHOSEN_BY = "vali/MAP"
ENGINES_ORDER = ORIGINAL  # MAP of the engine's own order, on the same searches
BEST = "best/"  # prefix of what is kept for each user at the look with the highest `CHOSEN_BY`
LOST = "evidence/lost"  # of a round: steps for which too few clients answered in time
_ANSWERS = "evidence/answers"  # of a step; of a round, the mean over its steps
STAGE = "stage "  # prefix, with the number of the week, of what is kept for each user at the end of every week
_USERS = "users/"  # prefix of what an examination finds for each user
# {word_vectors: what of a client's words stands in its update}
_WORDS = {
    "frozen": "Global word vectors are never sent, but an update still tells much about the words that a client "
    "searched for: the vector of such a word fits the change better than that of another.",
    "frequent": "An update holds the vectors of all frequent words. Those that changed are words of the client's own "
    "searches, and every frequent word of its queries is among them.",
    "all": "An update holds all word vectors. Those that changed are words of the client's own searches, and every "
    "word of its queries is among them.",
}


@dataclass(frozen=True)
class PersonalExperiment:
    """An `Experiment`."""

    recipe: Recipe
    setting: PersonalSetting

    @property
    def identity(self) -> str:
        population = self.setting.people.population
        said = f"{population.identity}, {population.n_users} users, {population.periods}"
        titles = np.ascontiguousarray(population.collection.titles).tobytes()
        return hashlib.sha256(said.encode() + titles).hexdigest()[:16]

    def check(self, options: Options) -> RunPlacement:
        if options.engine not in ("auto", "xla"):
            raise ValueError(f"engine is {options.engine!r}, but recipe fedps has models that only xla trains.")
        if (options.devices or 1) != 1:
            raise ValueError(f"devices is {options.devices}, but recipe fedps runs on one: leave --devices out.")
        if self.setting.model is None:
            return RunPlacement("cpu", "none", "nothing is trained")
        import_jax()
        return RunPlacement(choose_platform(options.device), "xla", "models of personalised search are JAX programs")

    def estimate(self, placed: RunPlacement) -> Notice | None:
        del placed
        return None

    def foresee(self) -> list[Notice]:
        rule = self.setting.rule
        of_rule = [] if rule is None else notice_rule(rule, n_asked=self.setting.cohort)
        of_liars = foresee_liars(self.recipe, n_asked=self.setting.cohort)
        return [*foresee_gaps(self.setting), *foresee_words(self.setting), *of_rule, *of_liars]

    def review(self, results: list[CellResult]) -> list[Notice]:
        n_lost = sum(int(np.sum(result.shown.get(LOST, 0))) for result in results)
        n_alone = sum(int(np.sum(result.shown.get(ALONE, 0))) for result in results)
        is_cut = any("evidence/cut_searches" in result.shown for result in results)
        late = f"In {n_lost} steps fewer than half of the clients answered in time, however often they were asked."
        alone = (
            f"{n_alone} steps were lost: fewer than two clients' updates counted, and one alone would show what "
            "its client has learnt."
        )
        cut = (
            f"Some clients have more to train on than they use: at most the latest {MOST_SEARCHES} searches, and "
            "lists and queries up to the lengths that the data state (evidence/cut_searches)."
        )
        n_held = sum(int(np.sum(result.shown.get(HELD_BACK, 0))) for result in results)
        held = f"{n_held} sums were not forwarded by their proxies: fewer than two clients' updates counted in them."
        said = (
            (n_held, Notice("held-back", held, "Their clients come again in the next round. Nothing is wrong.")),
            (n_lost, Notice("lost-steps", late, "Lower stragglers or dropout, or ask more clients (cohort).")),
            (n_alone, Notice("lone-steps", alone, "Ask more clients in a step (cohort).")),
            (is_cut, Notice("cut-searches", cut, "Nothing is wrong. Other clients do not notice.")),
        )
        return [notice for n, notice in said if n]

    def carry_out(self, options: Options) -> tuple[list[CellResult], str]:
        placed = self.check(options)
        tasks = [make_task(self.setting, repeat, placed.platform) for repeat in range(self.setting.repeats)]
        identity = f"{options.identity}-{placed.engine}-{placed.platform}"
        workers = options.workers or os.cpu_count() or 1
        # Why: personal vectors and the memory of their optimiser tell a user's words; a result does not need them
        options = replace(options, identity=identity, lasting=(PARAMS, STEPS))
        done = drive_tasks(tasks, options, workers=workers, measure=MAP)
        each = zip(tasks, done, strict=True)
        results = [read_result(self.setting, task, progress, repeat) for repeat, (task, progress) in enumerate(each)]
        return results, describe_platform(placed.platform)

    def measure(self, result: CellResult) -> dict[str, float]:
        found = {name: float(values[-1]) for name, values in result.looks.items() if name != LOOK}
        return {name: value for name, value in found.items() if np.isfinite(value)}

    def describe(self) -> Json:
        learning, setting = who_learns_from_logs(self.recipe, self.setting), self.setting
        population = setting.people.population
        return {
            "primary": PRIMARY,
            "data": {
                "name": population.name,
                "fingerprint": self.identity,
                "n_users": population.n_users,
                "n_measured": len(setting.measured_users),
                "n_documents": population.collection.n_documents,
                "n_words": population.collection.n_words,
            },
            "MAP": "mean over searches with a click, of the users who are measured; clicked documents are relevant; "
            "equal scores keep the engine's order",
            "bytes_per_client_round": 0 if setting.settings.is_central else 4 * count_params(setting),
            "clients_per_round": 1 if setting.settings.is_central else setting.n_clients,
            "messages_per_training": count_messages(setting),
            **({} if setting.proxies is None else {"proxies": describe_hierarchy(setting.proxies)}),
            "searches_per_client_round": [count_searches(setting)],
            "privacy": learning.promise,
            "who_learns_what": [{"who": who, "learns": learns} for who, learns in learning.lines],
            "guarantee": explain_guarantee(self.recipe, self.setting),
        }


def prepare_personal(recipe: Recipe, tell: Callable[[str], None], start: Path | None) -> PersonalExperiment:
    if start is not None:
        raise ValueError("--from begins with an exported ranker, which recipe fedps has none of: leave it out.")
    return PersonalExperiment(*resolve_personal(recipe, tell))


def foresee_gaps(setting: PersonalSetting) -> list[Notice]:
    """Measures that a whole run would end without, because nobody has searches to measure them on."""
    people, settings, users = setting.people, setting.settings, setting.measured_users.tolist()
    periods, notices = people.population.periods, []
    for prefix, span in measured_spans(periods, updating=settings.updating, training=settings.n_trainings).items():
        if not any(len(people.searches_in(user, span)) for user in users):
            first, stop = (str(np.datetime64(int(at), "s")) if np.isfinite(at) else None for at in span)
            when = f"from {first} on" + (f" and before {stop}" if stop else "")
            sentence = (
                f"None of the {len(users):,} users who are measured has a search with a click {when}: there will be no "
                f"{prefix}/MAP, and none of the measures beside it."
            )
            advice = "Give a log that reaches into that time, or measure more users (measured_users)."
            notices.append(Notice("nothing-measured", sentence, advice))
    return notices


def foresee_words(setting: PersonalSetting) -> list[Notice]:
    """Of word vectors that everybody can read."""
    if setting.settings.is_central or setting.sharing.words == "frozen" or setting.exchange.protection.has_noise:
        return []
    sentence = f"word_vectors={setting.sharing.words} without noise: {name_reader(setting.proxies)}."
    but = "the server" if setting.proxies is None else "server and proxies"
    advice = (
        f"privacy=sound hides it from everybody but {but}. Without word_vectors, updates still tell about words, "
        "but do not name them."
    )
    return [Notice("words-read", sentence, advice)]


def make_task(setting: PersonalSetting, repeat: int, platform: str) -> Task:
    """The training of one repeat."""
    from hushrank.engine.personal_examine import Examination

    has_lists = setting.people.population.log_of(0).dwell is not None
    examination = Examination(setting.people, has_lists, setting.measured_users)
    if setting.model is None:
        from hushrank.engine.personal_original import OriginalOrder

        return OriginalOrder(setting, examination)
    from hushrank.engine.personal_model import ModelArrays

    arrays = ModelArrays(setting, setting.key_of(repeat))
    if setting.settings.is_central:
        from hushrank.engine.personal_central import CentralSearch

        return CentralSearch(setting, arrays, examination, platform)
    from hushrank.engine.personal_task import make_flat

    return make_flat(setting, arrays, examination, platform)


def read_result(setting: PersonalSetting, task: Task, progress: Progress, repeat: int) -> CellResult:
    """In units of rounds, or of whole trainings where these follow one another."""
    n_units = setting.settings.n_trainings if setting.settings.is_staged else max(setting.rounds, 1)
    n_units = n_units if setting.model is not None else setting.settings.n_trainings
    each = task.rounds // n_units
    looks = {name: values for name, values in progress.looks.items() if not name.startswith(_USERS)}
    found = {name.removeprefix(_USERS): seen for name, seen in progress.looks.items() if name.startswith(_USERS)}
    chosen_by = looks.get(CHOSEN_BY, np.full(1, np.nan))
    best = int(np.argmax(chosen_by)) if np.isfinite(chosen_by).all() else -1
    looks = {**looks, LOOK: looks[LOOK] // each}
    users = {name: values[-1] for name, values in found.items() if name != ORIGINAL}
    users |= {f"{BEST}{name}": values[best] for name, values in found.items() if name != ORIGINAL}
    users |= keep_weeks(found, looks[LOOK]) if setting.settings.is_staged else {}
    shown = mark_lost(progress.shown)
    return CellResult(
        LOGGED,
        FOLD,
        repeat,
        params=progress.state[PARAMS],
        shown={name: join_steps(name, values, each) for name, values in shown.items()},
        looks=looks,
        users=users,
    )


def mark_lost(shown: NamedArrays) -> NamedArrays:
    """What each step showed, with the lost ones marked. Why here: the mean of a round's answers does not tell them."""
    is_lost = shown[_ANSWERS] == 0 if _ANSWERS in shown else np.zeros(0, dtype=bool)
    return {**shown, LOST: is_lost} if is_lost.any() else shown


def keep_weeks(found: dict[str, Array], stages: Array) -> dict[str, Array]:
    """MAP of every user on the week after each stage, and of the engine's order: weeks are compared user by user."""
    return {
        f"{STAGE}{stage}/{name}": found[name][look]
        for look, stage in enumerate(stages.tolist())
        for name in (PRIMARY, ORIGINAL)
        if name in found and stage > 0
    }


def join_steps(name: str, values: Array, each: int) -> Array:
    """[n_rounds] of what each step showed: searches and lost steps are added up, other numbers averaged."""
    by_round = values.reshape(-1, each)
    if name in (SEARCHES, ALONE, HELD_BACK, LOST):
        return np.asarray(np.nansum(by_round, axis=1).astype(np.int64))
    is_known = np.isfinite(by_round)
    total, count = np.where(is_known, by_round, 0).sum(axis=1), is_known.sum(axis=1)
    return np.divide(total, count, out=np.full(len(by_round), np.nan), where=count > 0)


def count_params(setting: PersonalSetting) -> int:
    """Numbers of one message."""
    from hushrank.recipes.personal_setting import count_sent

    assert setting.model is not None
    return count_sent(setting.model, setting.people.population.collection, setting.sharing)


def count_messages(setting: PersonalSetting) -> int:
    """That clients are asked for in the first repeat, those included that come too late or are asked for again."""
    if setting.settings.is_central:
        return 0
    key = setting.key_of(0)
    schedule, lateness = setting.schedule_of(key), setting.lateness_of(key)
    return count_asked(schedule, lateness, trainings=setting.settings.n_trainings)


def count_searches(setting: PersonalSetting) -> int:
    """That a client learns from in a round: the mean over the first users, at the last training."""
    settings, people = setting.settings, setting.people
    span = train_span(people.population.periods, updating=settings.updating, training=settings.n_trainings)
    n_users = min(setting.n_clients, MOST_SCANNED)
    return round(sum(len(people.searches_in(user, span)) for user in range(n_users)) / n_users)


def explain_guarantee(recipe: Recipe, setting: PersonalSetting) -> Json | None:
    """What a whole training guarantees; None where nothing is done to a client's update."""
    if setting.settings.is_central:
        return None
    return setting.exchange.protection.explain(exposure_of_clients(recipe, n_params=count_params(setting)))


def describe_files(setting: PersonalSetting) -> str:
    """What the run's own files hold of single users."""
    if setting.people.population.is_generated:
        return "Its files hold every generated user's measures, so that runs can be compared user by user."
    return "Its files hold means over all users and no number of a single user."


def describe_single(setting: PersonalSetting) -> str:
    """What one message holds, what it tells of words, and from whom that is hidden."""
    protection = setting.exchange.protection
    pairs = "" if protection.counts_alike else ", and how many pairs of documents it was learnt from"
    hidden = "No noise hides that, neither from the server nor, in the mean of a step, from everybody else."
    if setting.proxies is not None:
        hidden = hide_from_proxies(setting, setting.proxies)
    elif protection.has_noise and not protection.n_makers:
        hidden = "The server reads that before it adds the noise; the noise hides it from everybody else."
    elif protection.has_noise:
        hidden = (
            "A client's own share of the noise hides little of that from the server; the noise of the sum hides it."
        )
    return f"A message holds the change of the shared parameters{pairs}. {_WORDS[setting.sharing.words]} {hidden}"


def who_learns_from_logs(recipe: Recipe, setting: PersonalSetting) -> Disclosure:
    """Who learns what from a training on logs."""
    if setting.settings.is_central:
        promise, learns = disclose_place(setting)
        return Disclosure(promise, (("the operator", learns), ("this run", describe_files(setting))))
    said = setting.exchange.disclose(exposure_of_clients(recipe, n_params=count_params(setting)))
    said = said if setting.proxies is None else disclose_proxies(setting, setting.proxies, said)
    but = "" if setting.proxies is None else except_handed(setting)
    own = (
        f"Its own log, history, features and personal word vectors, which never leave it{but}, and the model of every "
        "step."
    )
    times = f" Each client sends {count_answers(recipe)} messages in all, one in every round."
    often = "" if setting.settings.updating == "online" else times
    run = (
        "A simulation: whoever ran it had every log. The lines above say who would learn what if every client were a "
        f"device of its own. {describe_files(setting)}"
    )
    lines = (("a client", own), *said.lines, ("in a message", f"{describe_single(setting)}{often}"), ("this run", run))
    return Disclosure(said.promise, lines)


def disclose_place(setting: PersonalSetting) -> tuple[str, str]:
    """What one place that has all logs promises, and what it learns."""
    how, room = setting.settings.hidden_by, setting.people.under.room
    if how == GROUP_USER:
        return (
            "No guarantee: one place has all queries, lists and clicks and trains on them. "
            f"Up to {room} users share an id.",
            "Every query, every list and every click, and the personal vectors of every id. It is not told which of "
            "the users of an id made a search; a query that says who asks tells it.",
        )
    if how == COVER_QUERY:
        return (
            "No guarantee: one place has all queries, lists and clicks and trains on them, under every user's own id. "
            f"Cover queries stand beside each query: {room - 1}.",
            "Every query, every list and every click of everybody among covers, and everybody's personal vectors. A "
            "cover has no click: every click tells that its query is the user's own.",
        )
    what = "trains on them" if setting.settings.is_trained else "orders what they search"
    return (
        f"No protection: one place has every user's queries, lists and clicks and {what} (the baseline).",
        "Every query, every list and every click of everybody, and everybody's personal vectors.",
    )
