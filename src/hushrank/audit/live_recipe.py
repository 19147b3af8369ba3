"""The live audit of a recipe: its mechanism in a federation that is started for it on this machine."""

from __future__ import annotations

from dataclasses import replace

from hushrank.audit.audit import COINS, AuditOptions, Look
from hushrank.audit.estimators import Confidence, bound_from_runs
from hushrank.audit.live import LiveTrial, observe_federation
from hushrank.audit.recipe import Question, Subject, describe_audit, find_subject
from hushrank.audit.updates import UpdateTrial
from hushrank.files import Json
from hushrank.privacy.placement import Adjacency
from hushrank.recipes.recipe import Recipe
from hushrank.streams import draw_bits, seed_key, stream
from hushrank.types import Array

RUNS = 200  # with the canary, and about as many without, unless given; Why: some twenty seconds of rounds


def audit_live(recipe: Recipe, question: Question, options: AuditOptions) -> Json:
    """As `audit_recipe`, for one number of rounds: 1 unless given."""
    if options.estimator != "runs":
        raise ValueError("a live audit divides a federation into runs: leave --estimator out.")
    subject = find_subject(recipe, replace(question, rounds=question.rounds or 1))
    n_runs = 2 * (options.runs or RUNS)
    coins = draw_bits(stream(seed_key(options.seed), COINS), n_runs) % 2 == 1
    trial = make_live_trial(recipe, subject, coins)
    scores = observe_federation(trial, report=options.report)
    sure = Confidence(1 - options.confidence, subject.exposure.delta or 0.0)
    bound = bound_from_runs(scores[coins], scores[~coins], sure, is_normal=trial.protection.has_normal_noise)
    look = Look(trial.rounds, subject.claim(trial.rounds), bound)
    settings = {"estimator": "live", "runs": n_runs, "confidence": options.confidence, "seed": options.seed}
    return describe_audit([look], {"recipe": recipe.recipe, **subject.about, **settings})


def make_live_trial(recipe: Recipe, subject: Subject, coins: Array) -> LiveTrial:
    """The federation that keeps what the recipe says; refuses what no live audit can be of."""
    audited, about = subject.trial, subject.about
    if not isinstance(audited, UpdateTrial):
        raise ValueError("a live audit is of updates behind noise (fpdgd with privacy=sound): leave --live out.")
    if not audited.is_everybody or audited.relation == Adjacency.add_remove:
        raise ValueError(
            "in a live audit every client takes part in every round: leave cohort out, and audit zero-out or "
            "replace-one."
        )
    settings = audited.protection.explain(subject.exposure)
    if settings is None or settings.get("noise_multiplier") is None:
        raise ValueError("a live audit is of updates behind noise (fpdgd with privacy=sound): leave --live out.")
    names = {"clip_norm": "clip_norm", "noise_multiplier": "noise_multiplier", "noise_at": "placement"}
    agreed = {live: settings[name] for name, live in names.items()}
    chosen = {"n_honest": settings["n_honest"], "delta": about["delta"], "adjacency": about["relation"]}
    agreed |= {name: value for name, value in chosen.items() if value is not None}
    agreed |= {"privacy": recipe.privacy, "mechanism": about["mechanism"], "n_clients": about["clients"]}
    agreed |= {"rounds": audited.rounds * len(coins), "server_rate": 1.0}
    return LiveTrial(
        audited.protection, audited.relation, agreed, about["clients"], audited.n_params, audited.rounds, coins
    )
