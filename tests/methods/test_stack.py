"""The stack: weights from scores out of fold, compared with fits made by hand; what it refuses; its files."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Features, Labels, Preferences, load, make, save
from podium.core.errors import ParameterError, PodiumError
from podium.data.demo import demo
from podium.methods.learned import stack
from podium.methods.learned.stack import split_methods

METHODS = "rrf + weighted_rrf"


def build_data(queries: int, seed: int = 0) -> tuple[Preferences, Labels]:
    """A good expert, and two in random order."""
    dice = np.random.default_rng(seed)
    lists, grades = {}, {}
    for query in range(queries):
        value = dice.permutation(8)
        order = [f"d{i}" for i in np.argsort(-value)]
        lists[query] = {"good": order} | {
            name: [f"d{i}" for i in dice.permutation(8)] for name in ("bad", "worse")
        }
        grades[query] = {f"d{i}": int(value[i] > 4) for i in range(8)}
    return Preferences.from_lists(lists), Labels.from_dict(grades)


def test_members_that_learn_never_score_queries_they_were_fitted_on(monkeypatch) -> None:
    preferences, labels = build_data(20)
    fitted_on: list[set[int]] = []
    scored: list[tuple[set[int], set[int]]] = []
    own_fit, own_columns = make("weighted_rrf").__class__.fit, stack._build_columns

    def record_fit(self, given, *more, **named):
        fitted_on.append(set(given.queries))
        return own_fit(self, given, *more, **named)

    def record_scores(members, given, features):
        if any(m.tags.supervised for m in members):
            scored.append((fitted_on[-1], set(given.queries)))
        return own_columns(members, given, features)

    monkeypatch.setattr(make("weighted_rrf").__class__, "fit", record_fit)
    monkeypatch.setattr(stack, "_build_columns", record_scores)
    make("stack", methods=METHODS, parts=4).fit(preferences, labels)
    assert len(scored) == 4
    assert all(not fitted & ranked and len(fitted | ranked) == 20 for fitted, ranked in scored)
    assert set().union(*(ranked for _, ranked in scored)) == set(preferences.queries)
    assert fitted_on[-1] == set(preferences.queries)


def test_scores_are_the_weighted_sum_of_standardized_member_scores() -> None:
    preferences, labels = build_data(20)
    model = make("stack", methods=METHODS).fit(preferences, labels)
    members = [make("rrf"), make("weighted_rrf").fit(preferences, labels)]
    weights = model.get_member_weights()
    assert weights["weighted_rrf"] > weights["rrf"] >= 0
    assert sum(weights.values()) == pytest.approx(2)
    query = preferences.queries[3]
    total = np.zeros(8)
    for member, weight in zip(members, weights.values(), strict=True):
        one = member.aggregate(preferences)
        scores = one.scores[one.index.slots(query)]
        total += weight * (scores - scores.mean()) / scores.std()
    ranked = model.aggregate(preferences)
    np.testing.assert_allclose(ranked.scores[ranked.index.slots(query)], total, atol=1e-9)


def test_it_is_not_worse_than_its_members_on_new_queries() -> None:
    from podium.evaluate import evaluate

    preferences, labels = build_data(40)
    new, new_labels = build_data(60, 1)
    means = {
        spec: evaluate(make(spec).fit(preferences, labels).aggregate(new), new_labels, "ndcg@5").mean()[
            "ndcg@5"
        ]
        for spec in ("rrf", "weighted_rrf", f"stack(methods={METHODS})")
    }
    assert means[f"stack(methods={METHODS})"] > means["weighted_rrf"] - 0.02
    assert means["weighted_rrf"] > means["rrf"] + 0.05


def test_a_file_holds_the_members(tmp_path) -> None:
    data = demo(30)
    model = make("stack(methods=rbc + svd(passes=5) + crf(passes=5))").fit(data.preferences, data.labels)
    save(model, tmp_path / "s.podium")
    again = load(tmp_path / "s.podium")
    assert again.get_member_weights() == model.get_member_weights()
    assert again.aggregate(data.preferences).scores.tobytes() == (
        model.aggregate(data.preferences).scores.tobytes()
    )
    # a second fit leaves nothing of the first
    model.fit(*build_data(12))
    assert "atlas-1" not in str(vars(model).get("member_1_experts_"))


def test_few_queries_leave_the_weights_equal() -> None:
    model = make("stack", methods=METHODS).fit(*build_data(2))
    assert set(model.get_member_weights().values()) == {1.0}


def test_item_features_reach_the_members_that_use_them() -> None:
    preferences, labels = build_data(30)
    index = labels.index
    queries = [index.queries[int(q)] for q in index.query_of_slot]
    features = Features.from_rows(queries, list(index.items), [[float(g)] for g in labels.grades], ["grade"])
    model = make("stack(methods=rrf + fused)").fit(preferences, labels, features)
    rank = model.aggregate(preferences, features)
    assert all(labels.grades[index.slot(q, rank.ranking(q)[0])] == 1 for q in preferences.queries)
    with pytest.raises(PodiumError, match="grade"):
        model.aggregate(preferences)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ("rrf", "two or more different methods"),
        ("rrf + rrf", "two or more different methods"),
        ("rrf + stack", "stack cannot be a member"),
        ("rrf + quality_weighted", "quality_weighted cannot be a member"),
        ("rrf + nothing", "no method is called 'nothing'|nothing"),
    ],
)
def test_members_that_cannot_be(methods: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make("stack", methods=methods)


def test_members_are_split_outside_brackets() -> None:
    assert split_methods("rrf(k=1e+2)+ svd") == ["rrf(k=1e+2)", "svd"]
    assert make("stack(methods=rrf + svd(passes=3))").methods == "rrf + svd(passes=3)"
