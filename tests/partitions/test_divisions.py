"""What each partition gives to whom: nothing twice, nothing lost, everything by seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from seeds import pick_seed

from hushrank.data.shapes import shape_named
from hushrank.data.synthetic import generate_folds, generate_wrapped
from hushrank.engine.inputs import join_queries
from hushrank.partitions.behaviours import Behaviours
from hushrank.partitions.clusters import Clusters, find_clusters, mean_vectors
from hushrank.partitions.dirichlet import Dirichlet, draw_shares
from hushrank.partitions.division import Division, Kind, Part, Whole, divergence, hand_out, make_alike, name_apart
from hushrank.partitions.intents import Intents, choose_intents
from hushrank.partitions.labels import Labels
from hushrank.partitions.quantity import Quantity, gini
from hushrank.streams import Purpose, seed_key, stream
from hushrank.types import Array, QuerySet

FOLD = generate_folds(generate_wrapped(shape_named("tiny:n_queries=100")), 5)[0]
DIFFERING = generate_folds(generate_wrapped(shape_named("intent-change-like:n_queries=60,n_features=8")), 5)[0]


def whole(n_clients: int, *, seed: int = 0, fold: object = None) -> Whole:
    key = stream(seed_key(seed), Purpose.PARTITION)
    return Whole(DIFFERING if fold == "intents" else FOLD, n_clients, 2 if fold == "intents" else 3, key)


def train_of(kind: Kind) -> QuerySet:
    assert kind.train is not None
    return kind.train


def rows_of(queries: QuerySet) -> set[bytes]:
    """Documents as bytes; no two of a generated set are the same."""
    return {row.tobytes() for row in queries.features}


# Labels


@pytest.mark.parametrize(
    ("n_labels", "n_clients", "grades"),
    [(1, 3, [{0}, {1}, {2}]), (2, 3, [{0, 1}, {0, 2}, {1, 2}]), (1, 6, [{0}, {1}, {2}, {0}, {1}, {2}])],
)
def test_a_client_has_only_its_grades_and_no_document_has_two_owners(
    n_labels: int, n_clients: int, grades: list[set[int]]
) -> None:
    parts = [train_of(kind) for kind in Labels(n_labels).divide(whole(n_clients)).kinds]
    assert [set(np.unique(part.grades).tolist()) for part in parts] == grades
    owned = [rows_of(part) for part in parts]
    assert sum(map(len, owned)) == len(set().union(*owned)) == FOLD.train.n_documents


def test_owners_of_a_grade_have_equally_many_of_its_documents() -> None:
    parts = [train_of(kind) for kind in Labels(2).divide(whole(3)).kinds]
    counts = np.array([np.bincount(part.grades, minlength=3) for part in parts])  # client x grade
    for grade in range(3):
        own = counts[counts[:, grade] > 0, grade]
        assert len(own) == 2 and abs(int(own[0]) - int(own[1])) <= 1


def test_a_list_is_what_is_left_of_its_query_and_empty_queries_vanish() -> None:
    for kind in Labels(1).divide(whole(3)).kinds:
        part = train_of(kind)
        assert part.lengths.min() >= 1 and set(part.query_ids) <= set(FOLD.train.query_ids)
        for query, query_id in enumerate(part.query_ids):
            before = FOLD.train.rows(FOLD.train.query_ids.index(query_id))
            own = {row.tobytes() for row in part.features[part.rows(query)]}
            assert own <= {row.tobytes() for row in FOLD.train.features[before]}


def test_the_sets_of_a_division_are_neighbours_in_memory() -> None:
    parts = hand_out(FOLD.train, np.arange(FOLD.train.n_documents) % 3, 3)
    assert all(part.features.base is parts[0].features.base for part in parts)
    assert np.array_equal(parts[1].grades, FOLD.train.grades[1::3])


def test_neighbours_are_joined_without_a_copy_and_others_by_one() -> None:
    parts = hand_out(FOLD.train, np.arange(FOLD.train.n_documents) % 3, 3)
    joined, turned = join_queries(parts, 10), join_queries(parts[::-1], 10)
    assert np.shares_memory(joined.features, parts[0].features)
    assert not np.shares_memory(turned.features, parts[0].features)
    expected = np.concatenate([part.features for part in parts[::-1]])
    assert np.array_equal(turned.features, expected) and len(joined.features) == FOLD.train.n_documents
    assert np.array_equal(join_queries(parts[1:], 10).features, np.concatenate([p.features for p in parts[1:]]))


def test_clients_with_the_same_grades_have_different_names() -> None:
    names = [kind.name for kind in Labels(1).divide(whole(6)).kinds]
    assert names == ["labels-0", "labels-1", "labels-2", "labels-0#2", "labels-1#2", "labels-2#2"]
    assert name_apart(["a", "b", "a", "a"]) == ["a", "b", "a#2", "a#3"]


def test_a_client_without_documents_is_refused() -> None:
    few = replace(FOLD, train=replace(FOLD.train, grades=np.minimum(FOLD.train.grades, 1).astype(np.uint8)))
    with pytest.raises(ValueError, match="labels-2 would have no documents of fold 1's training queries: take fewer"):
        Labels(1).divide(replace(whole(3), fold=few))


# Intents


def test_a_group_judges_by_one_intent_per_query_and_all_groups_by_different_ones() -> None:
    assert DIFFERING.train.intents is not None
    kinds = Intents().divide(whole(4, fold="intents")).kinds
    for query in range(DIFFERING.train.n_queries):
        rows = DIFFERING.train.rows(query)
        judged = sorted(train_of(kind).grades[rows].tobytes() for kind in kinds)
        assert judged == sorted(grades.tobytes() for grades in DIFFERING.train.intents[:, rows])


def test_only_labels_differ_so_features_are_shared() -> None:
    kinds = Intents().divide(whole(4, fold="intents")).kinds
    assert all(train_of(kind).features is DIFFERING.train.features for kind in kinds)
    assert all(kind.test is not None and kind.test.features is DIFFERING.test.features for kind in kinds)


def test_splits_with_other_numbers_of_intents_are_refused() -> None:
    given = whole(4, fold="intents")
    bare = replace(given.fold, test=replace(given.fold.test, intents=None))
    with pytest.raises(ValueError, match="as many intents in every split, and fold 1 has train 4, vali 4, test 0"):
        Intents().divide(replace(given, fold=bare))


@pytest.mark.parametrize("carry", [0.0, 0.3, 1.0])
def test_a_share_of_the_queries_keeps_the_order_of_the_intents(carry: float) -> None:
    ids = tuple(f"q{i}" for i in range(4000))
    many = QuerySet(np.zeros((4000, 1)), np.zeros(4000), np.arange(4001), ids, intents=np.zeros((4, 4000), np.uint8))
    chosen = choose_intents(many, carry, seed_key(pick_seed(1)))
    kept = np.mean((chosen == np.arange(4)).all(axis=1))
    by_chance = (1 - carry) / 24  # 4! orders
    assert abs(kept - carry - by_chance) < 4 * np.sqrt(0.25 / 4000)
    assert (np.sort(chosen, axis=1) == np.arange(4)).all()


def test_a_query_has_the_same_order_in_training_and_test() -> None:
    key = seed_key(3)
    whole_set, part = (choose_intents(split, 0.0, key) for split in (DIFFERING.train, DIFFERING.train))
    assert np.array_equal(whole_set, part)
    again = replace(DIFFERING, test=DIFFERING.train)
    kinds = Intents().divide(replace(whole(4, fold="intents"), fold=again)).kinds
    assert all(kind.test is not None and np.array_equal(train_of(kind).grades, kind.test.grades) for kind in kinds)


# Dirichlet and queries


def test_dirichlet_gives_every_document_to_one_client_and_less_evenly_the_smaller_the_concentration() -> None:
    skews = []
    for concentration in (0.2, 2.0, 200.0):
        part, given = Dirichlet(concentration), whole(3, seed=pick_seed(2))
        division = part.divide(given)
        owned = [rows_of(train_of(kind)) for kind in division.kinds]
        assert sum(map(len, owned)) == len(set().union(*owned)) == FOLD.train.n_documents
        skews.append(part.measure(given, division).value)
    assert skews[0] > skews[1] > skews[2]


def test_shares_have_the_mean_and_the_variance_of_a_dirichlet_law() -> None:
    """Mean 1 / n; variance (1/n)(1 - 1/n) / (n a + 1): for n = 4, a = .5 it is .1875 / 3 = .0625."""
    shares = np.array([draw_shares(0.5, 4, seed_key(pick_seed(seed))) for seed in range(3000)])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares.mean(axis=0), 0.25, atol=4 * 0.25 / np.sqrt(3000))
    np.testing.assert_allclose(shares.var(axis=0), 0.0625, rtol=0.12)


def test_a_very_small_concentration_still_gives_shares() -> None:
    assert draw_shares(1e-4, 5, seed_key(1)).max() == pytest.approx(1.0)


def test_clusters_divide_queries_whole_and_find_those_that_are_there() -> None:
    generator = np.random.default_rng(0)
    centres = np.array([[0, 0], [10, 0], [0, 10]])
    points = np.concatenate([centre + generator.normal(size=(20, 2)) for centre in centres])
    _, found = find_clusters(points, 3, key=seed_key(pick_seed(4)))
    assert all(len(set(found[i : i + 20].tolist())) == 1 for i in (0, 20, 40)) and len(set(found.tolist())) == 3


def test_every_cluster_has_queries_even_where_all_are_the_same() -> None:
    _, found = find_clusters(np.zeros((5, 2)), 4, key=seed_key(0))
    assert set(found.tolist()) == {0, 1, 2, 3}


def test_clients_have_whole_queries_of_their_own_and_test_queries_like_them() -> None:
    kinds = Clusters().divide(whole(4)).kinds
    trained = [query_id for kind in kinds for query_id in train_of(kind).query_ids]
    assert sorted(trained) == sorted(FOLD.train.query_ids)
    tested = [query_id for kind in kinds if kind.test is not None for query_id in kind.test.query_ids]
    assert len(tested) == len(set(tested)) and set(tested) <= set(FOLD.test.query_ids)
    for kind in kinds:
        part = train_of(kind)
        whole_rows = FOLD.train.rows(FOLD.train.query_ids.index(part.query_ids[0]))
        assert np.array_equal(part.features[part.rows(0)], FOLD.train.features[whole_rows])


# People and searches


def test_people_of_the_literature_click_by_client() -> None:
    ccm, pbm = Behaviours().divide(whole(3)), Behaviours("pbm").divide(whole(5))
    assert [kind.name for kind in ccm.kinds] == ["perfect", "navigational", "informational"]
    assert [kind.name for kind in pbm.kinds] == ["pbm-0", "pbm-0.5", "pbm-1", "pbm-1.5", "pbm-2"]


def test_clients_search_as_often_as_the_list_says_and_the_first_ones_take_its_beginning() -> None:
    division = Quantity().divide(whole(4))
    assert [division.kinds[k].name for k in division.of_client] == [
        "searches-1",
        "searches-3",
        "searches-5",
        "searches-7",
    ]
    assert Quantity().searches(4) == (1, 3, 5, 7) and Quantity().searches(20) == (1, 3, 5, 7, 9)


# Skew


def test_skews_worked_by_hand() -> None:
    """Gini of 1, 3, 5, 7, 9: mean difference of all pairs with themselves 80 / 25 = 3.2, over twice the mean 10."""
    assert gini(np.array([1, 3, 5, 7, 9])) == pytest.approx(0.32)
    assert gini(np.array([5, 5])) == 0
    assert divergence(np.array([1.0, 0]), np.array([0, 1.0])) == 1 and divergence(np.ones(2) / 2, np.ones(2) / 2) == 0
    # against halves: m = (3/4, 1/4); (log2(4/3) + (log2(2/3) + log2(2)) / 2) / 2
    expected = (np.log2(4 / 3) + (np.log2(2 / 3) + 1) / 2) / 2
    assert divergence(np.array([1.0, 0]), np.array([0.5, 0.5])) == pytest.approx(expected)


def test_the_skew_of_clicks_worked_by_hand() -> None:
    """Three grades, perfect (0, .5, 1; never stops) and navigational (.05, .5, .95; stops .2, .5, .9).

    Half of the sum of |differences| of (no click, click and on, click and leave), by grade:
    0: (.05 + .04 + .01) / 2 = .05;  1: (0 + .25 + .25) / 2 = .25;  2: (.05 + .905 + .855) / 2 = .905; mean .40167
    """
    division = Behaviours().divide(whole(3))
    pair = Division(division.kinds[:2], (0, 1))
    assert Behaviours().measure(whole(2), pair).value == pytest.approx((0.05 + 0.25 + 0.905) / 3, abs=1e-6)


def test_the_skew_of_intents_is_what_another_client_does_not_find_relevant() -> None:
    given = whole(4, fold="intents")
    kinds = Intents().divide(given).kinds[:2]
    one, other = (train_of(kind).grades > 0 for kind in kinds)
    expected = ((one & ~other).sum() / one.sum() + (other & ~one).sum() / other.sum()) / 2
    assert Intents().measure(given, Division(kinds, (0, 1))).value == pytest.approx(expected)


PARTS: list[tuple[Part, int, str | None]] = [
    (Labels(1), 6, None),
    (Labels(2), 3, None),
    (Intents(), 4, "intents"),
    (Dirichlet(2.0), 3, None),
    (Clusters(), 4, None),
    (Behaviours(), 3, None),
    (Quantity(), 5, None),
]


@pytest.mark.parametrize(("part", "n_clients", "fold"), PARTS, ids=lambda v: type(v).__name__)
def test_a_skew_is_between_0_and_1_with_a_row_for_each_kind(part: Part, n_clients: int, fold: str | None) -> None:
    given = whole(n_clients, fold=fold)
    division = part.divide(given)
    skew = part.measure(given, division)
    assert 0 < skew.value <= 1 and [name for name, _ in skew.rows] == [kind.name for kind in division.kinds]


@pytest.mark.parametrize(("part", "n_clients", "fold"), PARTS, ids=lambda v: type(v).__name__)
def test_clients_that_are_made_alike_have_no_training_data_of_their_own(
    part: Part, n_clients: int, fold: str | None
) -> None:
    alike = make_alike(part.divide(whole(n_clients, fold=fold)), is_redrawn=part.is_redrawn)
    assert all(kind.train is None and kind.n_interactions is None for kind in alike.kinds)
    assert all((kind.user is not None) == part.is_redrawn for kind in alike.kinds)


def fingerprint(part: Part, given: Whole) -> list[tuple[Array, ...]]:
    kinds = part.divide(given).kinds
    return [(k.train.grades, k.train.features) for k in kinds if k.train is not None]


@pytest.mark.parametrize(("part", "n_clients", "fold"), PARTS[:5], ids=lambda v: type(v).__name__)
def test_the_same_key_divides_alike_and_another_one_otherwise(part: Part, n_clients: int, fold: str | None) -> None:
    one, same, other = (fingerprint(part, whole(n_clients, seed=seed, fold=fold)) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for x, y in zip(one, same, strict=True) for a, b in zip(x, y, strict=True))
    assert not all(np.array_equal(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True))


def test_mean_vectors_are_those_of_the_queries() -> None:
    expected = FOLD.train.features[FOLD.train.rows(3)].astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(mean_vectors(FOLD.train)[3], expected)
