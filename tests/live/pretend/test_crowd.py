"""Many pretend people in one process: what they see is told round by round, and what goes wrong is told once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_federation import ScriptedFederation, no
from scripted_server import Request, Response, serving
from tiny_settings import N_FEATURES, tiny_dataset

from hushrank.clicks.named import named_user
from hushrank.live.device.client import Ending, UnknownClientError
from hushrank.live.device.named import make_learning
from hushrank.live.device.store import KeptRanker
from hushrank.live.device.transport import Stop, StoppedError
from hushrank.live.pretend.crowd import Pretence, RoundSeen, Scoreboard, key_of_people, pretend
from hushrank.live.wire.agreement import Agreement, make_agreement
from hushrank.live.wire.refusals import Reason
from hushrank.live.wire.terms import key_of
from hushrank.metrics.ndcg import mean_ndcg

FOLD = tiny_dataset().folds[0]
AGREEMENT = make_agreement("crowd", n_features=N_FEATURES, seed=4, rounds=3)
PARAMS = np.linspace(-1, 1, N_FEATURES, dtype=np.float32)


def pretence_of(home: Path, **changes: Any) -> Pretence:
    made = Pretence("", home, FOLD, named_user("perfect", n_grades=3), tokens=("a", "b", "c"))
    return replace(made, **changes)


def run(federation: Callable[[Request], Response], pretence: Pretence, ids: list[int]) -> tuple[list[Any], ...]:
    """Endings, rounds shown, agreements greeted and sentences told."""
    shown, greeted, told = list[RoundSeen](), list[Agreement](), list[str]()
    with serving(federation) as (url, _):
        endings = pretend(
            replace(pretence, url=url), ids, stop=Stop(), show=shown.append, greet=greeted.append, tell=told.append
        )
    return endings, shown, greeted, told


def test_a_round_is_told_when_its_ranker_is_known() -> None:
    shown = list[RoundSeen]()
    board, learning = Scoreboard(FOLD.test, shown.append), make_learning(AGREEMENT)
    board.saw_ranker(learning, KeptRanker(1, 0 * PARAMS, None))
    for quality in (0.25, 0.75):
        board.saw_lists(1, quality)
    assert shown == []
    for _ in range(2):  # every person hears of the new ranker
        board.saw_ranker(learning, KeptRanker(2, PARAMS, None))
    offline = mean_ndcg(FOLD.test, FOLD.test.features @ PARAMS).value
    assert shown == [RoundSeen(1, 2, 0.5, offline)]


def test_people_take_part_until_the_end_and_are_greeted_once(tmp_path: Path) -> None:
    federation = ScriptedFederation(AGREEMENT, PARAMS)
    endings, shown, greeted, told = run(federation, pretence_of(tmp_path), [1])
    assert endings == [Ending.finished] and greeted == [AGREEMENT] and told == []
    assert [seen.round for seen in shown] == [1, 2, 3] and all(seen.n_people == 1 for seen in shown)
    assert (tmp_path / "1" / "client.sqlite").is_file() and list(federation.tokens) == ["b"]  # line 1, from 0


def test_who_has_spent_the_budget_leaves_and_the_others_go_on(tmp_path: Path) -> None:
    agreement = make_agreement("crowd", n_features=N_FEATURES, method="foltr-es", p=0.5, rounds=9)
    price = make_learning(agreement).price
    assert price is not None
    pretence = pretence_of(tmp_path, epsilon=2.5 * price.ratio * price.times)
    federation = ScriptedFederation(agreement, PARAMS)
    left = list[str]()

    def answer(request: Request) -> Response:
        if request.path == "/v1/leave":
            left.append(request.headers["Authorization"])
        return no(Reason.credential) if left and request.path == "/v1/ranker" else federation(request)

    assert run(answer, pretence, [0])[0] == [Ending.budget]
    assert len(left) == 1 and len(federation.uploads) == 2


@pytest.mark.parametrize(
    ("changes", "ids", "said"),
    [
        ({"tokens": ("a",)}, [0, 1], "there are 1 tokens, but person 1 needs number 2"),
        ({"seed": 5}, [0], "seed is 5, but this federation's is 4"),
        (
            {"fold": replace(FOLD, train=replace(FOLD.train, features=FOLD.train.features[:, :2]))},
            [0],
            "have 2 features",
        ),
        ({"epsilon": 1.0}, [0], "promises no privacy"),
    ],
)
def test_the_first_error_stops_all_and_is_told(
    changes: dict[str, Any], ids: list[int], said: str, tmp_path: Path
) -> None:
    federation = ScriptedFederation(AGREEMENT, PARAMS)
    federation.round = 0  # nobody gets anything to do
    with pytest.raises(ValueError, match=said):
        run(federation, pretence_of(tmp_path, **changes), ids)


def test_stopping_stops_all(tmp_path: Path) -> None:
    federation, stop = ScriptedFederation(AGREEMENT, PARAMS), Stop()
    federation.round = 0
    silent: Any = lambda _: None  # noqa: E731
    with serving(federation) as (url, _), pytest.raises(StoppedError):
        pretend(pretence_of(tmp_path, url=url), [0, 1], stop=stop, show=silent, greet=lambda _: stop.set(), tell=silent)


def test_people_draw_what_the_simulator_draws(tmp_path: Path) -> None:
    pretence = pretence_of(tmp_path)
    assert key_of_people(pretence, AGREEMENT).tolist() == key_of(AGREEMENT).tolist()
    unseeded = make_agreement("crowd", n_features=N_FEATURES)
    same = key_of_people(replace(pretence, seed=4), unseeded)
    assert same.tolist() == key_of(AGREEMENT).tolist() != key_of_people(pretence, unseeded).tolist()


def test_who_has_left_stays_away_and_the_others_go_on(tmp_path: Path) -> None:
    """As somebody whom the operator forgets; if nobody is known any more, that is the error."""
    federation = ScriptedFederation(AGREEMENT, PARAMS)

    def without(*tokens: str) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            gone = {federation.tokens[token] for token in tokens if token in federation.tokens}
            return no(Reason.credential) if request.headers.get("Authorization") in gone else federation(request)

        return answer

    endings, _, _, told = run(without("b"), pretence_of(tmp_path), [0, 1])
    assert endings == [Ending.finished]
    assert told == ["person 1 has left: the server does not know it any more"]
    with pytest.raises(UnknownClientError, match="does not know this client any more"):
        run(without("a", "b"), pretence_of(tmp_path), [0, 1])
