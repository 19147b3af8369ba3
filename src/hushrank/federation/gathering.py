"""What a server makes of a round's messages: liars' are put in, broken ones are refused, and one update comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hushrank.aggregation.mean import mean_aggregate, mean_gathered
from hushrank.aggregation.named import CheckedRule
from hushrank.attacks.false_rewards import RewardTarget, misreport_rewards
from hushrank.attacks.named import Target, forge_messages
from hushrank.federation.seen import EVIDENCE
from hushrank.federation.state import RULE, part_of
from hushrank.privacy.draws import noise_key
from hushrank.streams import Purpose, stream
from hushrank.types import Array, Combined, Gathered, NamedArrays, Weighted

if TYPE_CHECKING:
    from hushrank.federation.round import Federation


class Averaged(NamedTuple):
    """The messages behind a mean."""

    messages: Sequence[Weighted]
    ids: Array  # [n] whose they are


def combine_messages(
    federation: Federation,
    state: NamedArrays,
    params: Array,
    sent: Sequence[Weighted],
    ids: Array,
    *,
    key: Array,
    round: int,
) -> tuple[Combined | None, dict[str, float], Averaged]:
    """One update of all messages, liars' included, and what is known of them; None: too few of them can be used. Last
    what was averaged, if anything was."""
    n_sent, draws = len(params) + federation.remedy.n_extra(len(params)), stream(key, Purpose.ATTACK, round)
    is_malicious = ids < federation.n_malicious
    if federation.misreports is not None and federation.reward_form is not None:
        target = RewardTarget(params, round, draws, federation.reward_form)
        # Why ignored: where there is such a form, messages are rewards and not updates
        sent = misreport_rewards(federation.misreports, sent, ids, is_malicious, target)  # type: ignore[arg-type, assignment]
    if not sent or (federation.attack is None and federation.rule is None):
        return Combined(average(federation, sent, n_sent, key, round)), {}, Averaged(sent, ids)
    gathered = partial(gather, ids=ids, params=params, round=round, memory=part_of(state, RULE))
    if federation.attack is not None:
        rule = rule_on_trial(federation.rule, gathered(sent))
        sent = forge_messages(federation.attack, sent, is_malicious, Target(params, round, draws, rule))
    received = gathered(sent)
    refused = count_refused(received.updates, is_attacked=federation.attack is not None)
    if federation.rule is not None:
        combined = combine_gathered(federation.rule, received)
        evidence = refused if combined is None else {**name_evidence(combined, is_malicious), **refused}
        return combined, evidence, Averaged((), ids[:0])
    is_finite = find_finite(received.updates)
    usable = Averaged([message for message, fine in zip(sent, is_finite, strict=True) if fine], ids[is_finite])
    if federation.quorum.count([message.weight for message in usable.messages]) < federation.quorum.needed(len(ids)):
        return None, refused, usable
    return Combined(average(federation, usable.messages, n_sent, key, round)), refused, usable


def gather(sent: Sequence[Weighted], *, ids: Array, params: Array, round: int, memory: NamedArrays) -> Gathered:
    """All messages of a round at once."""
    updates, weights = np.stack([m.delta for m in sent]), np.array([m.weight for m in sent])
    return Gathered(updates, weights, ids, params, round, memory)


def average(federation: Federation, sent: Sequence[Weighted], n_params: int, key: Array, round: int) -> Array:
    """[n_params] one update of all messages."""
    if federation.combine is not None:
        own = noise_key(key, federation.noise_number)
        return federation.combine(sent, n_params=n_params, key=own, round=round)
    return mean_aggregate(sent, n_params=n_params)


def find_finite(updates: Array) -> Array:
    """[n_clients] whether an update is all numbers: one with NaN or infinities is refused before aggregation."""
    return np.asarray(np.isfinite(updates).all(axis=1))


def combine_gathered(rule: CheckedRule | None, gathered: Gathered) -> Combined | None:
    """One update of all that are finite and have weight; without a rule their weighted mean.

    None: too few are left for the rule, and the round is lost. Who is left out is trusted with 0.
    """
    is_used = find_finite(gathered.updates) & (gathered.weights > 0)
    used = gathered if is_used.all() else keep_some(gathered, is_used)
    if len(used.ids) < (1 if rule is None else rule.n_needed):
        return None
    if rule is None:
        return Combined(mean_gathered(used.updates, used.weights), memory=gathered.memory)
    combined = rule(used)
    if used is gathered or combined.trust is None:
        return combined
    trust = np.zeros(len(is_used))
    trust[is_used] = combined.trust
    return combined._replace(trust=trust)


def keep_some(gathered: Gathered, is_kept: Array) -> Gathered:
    return replace(
        gathered,
        updates=gathered.updates[is_kept],
        weights=gathered.weights[is_kept],
        ids=gathered.ids[is_kept],
    )


def rule_on_trial(rule: CheckedRule | None, gathered: Gathered) -> Callable[[Array, Array], Array]:
    """(updates [n, n_params], who [n]) -> what the server would make of these; it remembers nothing of the trial."""

    def try_rule(updates: Array, who: Array) -> Array:
        trial = replace(gathered, updates=updates, weights=gathered.weights[who], ids=gathered.ids[who])
        combined = combine_gathered(rule, trial)
        return np.zeros(updates.shape[1]) if combined is None else combined.update

    return try_rule


def name_evidence(combined: Combined, is_malicious: Array) -> dict[str, float]:
    """What a rule tells about a round, as numbers of the round; is_malicious [n_clients].

    With a rule that says how much of each update counted: evidence/caught is how much of the liars' did not, and
    evidence/wronged how much of the honest clients' did not, from 0 to 1; NaN where there are none.
    """
    found = dict(combined.evidence)
    if combined.trust is not None:
        ignored = 1 - combined.trust
        found |= {"caught": _mean(ignored[is_malicious]), "wronged": _mean(ignored[~is_malicious])}
    return prefix_evidence(found)


def count_refused(updates: Array, *, is_attacked: bool) -> dict[str, float]:
    """evidence/refused: updates of a round that are not finite; of honest rounds without any nothing is said."""
    n_refused = int(np.count_nonzero(~find_finite(updates)))
    return prefix_evidence({"refused": n_refused}) if is_attacked or n_refused else {}


def prefix_evidence(evidence: Mapping[str, float]) -> dict[str, float]:
    return {f"{EVIDENCE}/{name}": value for name, value in evidence.items()}


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")
