"""What a simulation's owner should know before it begins and when it has ended."""

from __future__ import annotations

import numpy as np

from hushrank.engine.estimate import count_planned, estimate_plain_seconds
from hushrank.engine.kernel_fallback import why_no_kernel
from hushrank.engine.record import stack_named
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult
from hushrank.federation.exchange import UpdateExchange
from hushrank.federation.seen import EVIDENCE
from hushrank.federation.state import part_of
from hushrank.look.numbers import format_duration
from hushrank.runs.notices import (
    notice_clicks,
    notice_fall,
    notice_logged_clicks,
    notice_rule,
    notice_scores,
    notice_unmoved,
    share_of_fixed_lists,
)
from hushrank.runs.trials import N_SEARCHES, share_clicked, try_searches
from hushrank.types import Notice


def estimate_slowness(setting: Setting) -> Notice:
    """How long the plain engine will need, said before it begins."""
    seconds = estimate_plain_seconds(setting)
    about = "" if seconds is None else f", about {format_duration(seconds)} in all (estimated by a few trial searches)"
    sentence = f"The plain engine is slow: {count_planned(setting):,} searches{about}."
    advice = (
        "Take fewer rounds, clients, folds or repeats; or give your learner a pull function, your click model a table "
        "of probabilities, which the fast engines run (docs, Use your own methods, Speed)."
    )
    return Notice("plain-engine", sentence, advice)


def foresee_rule(setting: Setting) -> list[Notice]:
    """Whether the rule is used where something is proven of it, and where it does anything."""
    rule = setting.method.rule
    return [] if rule is None else notice_rule(rule, n_asked=setting.method.population.cohort_size)


def foresee_clicks(setting: Setting) -> list[Notice]:
    """Whether people, or those whose clicks were logged, click at all."""
    if setting.replays is None:
        return notice_clicks(try_searches(setting), n_searches=N_SEARCHES)
    log = setting.replays[0].log
    return notice_logged_clicks(share_clicked(log), n_impressions=log.n_impressions)


def review_results(setting: Setting, results: list[CellResult]) -> list[Notice]:
    """What the trainings have come to."""
    users = dict.fromkeys(result.user for result in results)
    curves = {user: np.array([result.vali for result in results if result.user == user]) for user in users}
    has_moved = [result.first is None or bool(np.any(result.params != result.first)) for result in results]
    quality = [not (result.test[0] == result.test[-1] and result.vali[0] == result.vali[-1]) for result in results]
    trained = [*review_scores(setting, results), *notice_unmoved(has_moved, quality), *notice_fall(curves)]
    return [*trained, *review_remedy(setting, results), *review_kernel(setting)]


def review_kernel(setting: Setting) -> list[Notice]:
    """Whether the run was slower than this GPU allows."""
    reason = why_no_kernel(setting)
    if reason is None:
        return []
    sentence = f"hushrank's GPU kernel could not be compiled ({reason}), so XLA's own kernels were used."
    return [Notice("no-gpu-kernel", sentence, "Results are equal to rounding; only speed suffers.", kind="note")]


def review_remedy(setting: Setting, results: list[CellResult]) -> list[Notice]:
    """What the remedy found out about the clients."""
    last = stack_named([{name: looks[-1] for name, looks in result.looks.items()} for result in results])
    found = part_of(last, EVIDENCE)
    sentence = setting.method.remedy.conclude(found) if found else None
    if sentence is None:
        return []
    names = " and ".join(f"{EVIDENCE}/{name}" for name in found)
    return [Notice("remedy", sentence, f"See {names} in metrics.jsonl for when.", kind="note")]


def review_scores(setting: Setting, results: list[CellResult]) -> list[Notice]:
    """Of lists that are sampled: an evolution strategy sorts, and a log has its lists already."""
    if setting.method.exchange.name != UpdateExchange.name or setting.replays is not None:
        return []
    shares, largest = [], 0.0
    for result in results:
        queries = setting.dataset.folds[find_fold(setting, result)].train
        scores = setting.method.ranker.score(result.params, queries.features)
        shares.append(share_of_fixed_lists(queries, scores))
        largest = max(largest, float(np.abs(scores).max()))
    return notice_scores(shares, largest, has_liars=setting.method.has_liars)


def find_fold(setting: Setting, result: CellResult) -> int:
    """The index of a result's fold."""
    return next(i for i, fold in enumerate(setting.dataset.folds) if fold.number == result.fold)
