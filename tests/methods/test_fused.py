"""The fused model: explanations, item features of any scale, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Features, Labels, Preferences, load, make, save
from podium.analysis.figures import weight_table
from podium.core.errors import InputError, PodiumWarning
from podium.methods import costs
from podium.methods.feature.feature_model import normalize_by_query
from podium.methods.learned.fused import build_expert_features, standardize_by_query

ITEMS = [f"i{k}" for k in range(6)]


def data(seed=0, queries=12):
    """Three experts with partial lists, and grades."""
    random = np.random.default_rng(seed)
    lists = {
        f"q{q}": {f"e{e}": random.permutation(ITEMS)[: random.integers(2, 7)].tolist() for e in range(3)}
        for q in range(queries)
    }
    items = {q: sorted({i for one in said.values() for i in one}) for q, said in lists.items()}
    grades = {q: {i: int(random.integers(0, 3)) for i in known} for q, known in items.items()}
    return Preferences.from_lists(lists), Labels.from_dict(grades)


def described(labels, scale=lambda query: 1.0):
    """One feature that follows the grades, in units of each query's own."""
    index = labels.index
    queries = [index.queries[int(q)] for q in index.query_of_slot]
    values = [[g * scale(q)] for q, g in zip(queries, labels.grades.tolist(), strict=True)]
    return Features.from_rows(queries, list(index.items), values, ["good"])


@pytest.mark.parametrize("spec", ["fused", "fused(standardize=True)"])
def test_explanations_add_up_with_item_features(spec, tmp_path):
    p, labels = data()
    x = described(labels)
    model = make(spec).fit(p, labels, x)
    save(model, tmp_path / "m.podium")
    for one in (model, load(tmp_path / "m.podium")):
        assert one.explains_exactly
        for query in p.queries:
            for place in one.aggregate(p, x)[query]:
                parts = one.explain(p, query, place.item, x)
                assert set(parts) == {"e0", "e1", "e2", "(item features)"}
                assert sum(parts.values()) == pytest.approx(place.score, abs=1e-9)


def test_models_that_are_not_sums_say_so():
    assert not make("fused(hidden=2)").explains_exactly
    assert not make("fused(trees=3)").explains_exactly
    assert not make("svd(scorer=lambdamart)").explains_exactly
    assert not make("weighted_kemeny").explains_exactly
    assert make("svd").explains_exactly


def test_units_of_features_do_not_matter_and_other_queries_neither():
    p, labels = data()
    one, tiny = described(labels), described(labels, lambda _: 1e-15)
    mixed = described(labels, lambda query: 1e15 if query == "q3" else 1.0)
    model = make("fused").fit(p, labels, one)
    expected = model.aggregate(p, one).scores
    for x in (tiny, mixed):
        np.testing.assert_allclose(model.aggregate(p, x).scores, expected, rtol=1e-9, atol=1e-12)
    assert "(item features)" in model.explain(p, "q0", p.index.items[0], one)


def test_a_missing_feature_is_neutral_wherever_zero_lies():
    p, labels = data()
    one = described(labels)
    values = np.where(np.arange(len(one.values))[:, None] % 3 == 0, np.nan, one.values)
    low, high = (Features(one.index, values + shift, one.names) for shift in (0.0, 1000.0))
    model = make("fused").fit(p, labels, low)
    np.testing.assert_allclose(
        model.aggregate(p, high).scores, model.aggregate(p, low).scores, rtol=1e-9, atol=1e-12
    )


def test_sums_that_cancel_are_constant():
    p, _ = data(queries=1)
    noise = np.arange(len(p.index.items), dtype=float)[:, None] * 1e-16
    assert not standardize_by_query(p.index, noise)[0].any()
    assert normalize_by_query(
        p.index.starts, noise, "deviation"
    ).any()  # a feature is no sum, however small it is


def test_features_of_other_items_are_told():
    p, labels = data()
    x = described(labels)
    model = make("fused").fit(p, labels, x)
    with pytest.warns(PodiumWarning, match="none of these items has item features"):
        model.aggregate(p, Features.from_rows(["Q0"], ["i0"], [[1.0]], ["good"]))
    with pytest.raises(InputError, match=r"was fitted with the item features .*, and got none"):
        model.aggregate(p)


def test_too_many_experts_are_refused(monkeypatch):
    p, labels = data()
    monkeypatch.setattr(costs, "LARGEST_TABLE", 1000)
    with pytest.raises(
        InputError, match=r"3 experts and .* items make the table of features too large.* use crf"
    ):
        make("fused").fit(p, labels)
    with pytest.raises(InputError, match="use matrices='hybrid'"):
        make("svd").fit(p, labels)


def test_trees_where_one_query_teaches():
    pytest.importorskip("lightgbm")
    p, labels = data()
    flat = Labels(labels.index, np.where(labels.index.query_of_slot == 0, labels.grades, 1.0))
    assert make("fused(trees=2, passes=3, members=1)").fit(p, flat).grown_


def test_models_of_earlier_versions_have_all_views(tmp_path):
    """A file without `views` and `views_` holds weights of all views."""
    from podium.models.model_files import read_contents, write_contents

    p, labels = data()
    model = make("fused(views=all)").fit(p, labels)
    save(model, tmp_path / "new.podium")
    name, parameters, learned = read_contents(tmp_path / "new.podium")
    assert (parameters.pop("views"), learned.pop("views_")) == ("all", "all")
    write_contents(tmp_path / "old.podium", name, parameters, learned)
    old = load(tmp_path / "old.podium")
    assert old.aggregate(p).scores.tobytes() == model.aggregate(p).scores.tobytes()
    assert weight_table(old).keys() == weight_table(model).keys()
    place = old.aggregate(p)["q0"][0]
    assert sum(old.explain(p, "q0", place.item).values()) == pytest.approx(place.score, abs=1e-9)


def test_views_of_ranks_are_what_they_are_called():
    """Log rank, steep reciprocal rank, place and absence, computed by hand for one query."""
    p = Preferences.from_lists({"q": {"x": ["a", "b", "c"], "y": ["b"]}})
    features = build_expert_features(p, np.array([0, 1]), 2, depth=3.0, views="ranks")
    absence, top, high, within = features.own
    assert absence.tolist() == [[0, 1], [0, 0], [0, 1]]
    np.testing.assert_allclose(top, [[1, 0], [6 / 7, 1], [6 / 8, 0]])
    np.testing.assert_allclose(
        high, [[1, 0], [1 - np.log(2) / np.log(4), 1], [1 - np.log(3) / np.log(4), 0]], atol=1e-12
    )
    np.testing.assert_allclose(within, [[1, 0], [2 / 3, 1], [1 / 3, 0]])
    assert features.compute_consensus(p.index).shape == (3, 0)
    assert weight_table(make("fused").fit(*data())).keys() == {"not listed", "top ranks", "log rank", "place"}


def test_votes_have_all_views():
    votes = Preferences.from_comparisons(["q"] * 3, ["j"] * 3, ["a", "a", "b"], ["b", "c", "c"])
    model = make("fused").fit(votes, Labels.from_dict({"q": {"a": 2, "b": 1, "c": 0}}))
    assert model.views_ == "all"
    assert model.aggregate(votes).ranking("q") == ["a", "b", "c"]
