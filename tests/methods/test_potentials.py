"""Potentials of the CRF: their values by definition, exact inference, own ones, and features of items and queries."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest

import podium
from podium import Features, Labels, Preferences
from podium.core import registry
from podium.core.errors import InputError, ModelFileError, ParameterError
from podium.core.params import Range
from podium.data.dataset import Dataset
from podium.evaluate import evaluate
from podium.methods.base import FEATURES
from podium.methods.learned.crf import CrfAggregator
from podium.methods.learned.potentials import Potential
from podium.models import model_files
from reference import permutations as reference

LISTS = {"q1": {"x": ["a", "b", "c", "d"], "y": ["d", "b"]}, "q2": {"x": ["e", "a"], "y": ["b", "a", "e"]}}
LABELS = Labels.from_dict({"q1": {"a": 2, "b": 1, "c": 0, "d": 0}, "q2": {"a": 1, "b": 0, "e": 0}})


def ranks(query: str, expert: str) -> dict[str, int]:
    return {item: place for place, item in enumerate(LISTS[query][expert], 1)}


@pytest.fixture
def toy():
    """Own potentials, defined for one test."""

    @dataclass(frozen=True, kw_only=True, repr=False)
    class TopPlaces(Potential):
        """1 for the first places."""

        name = "toy_top"
        depth: Annotated[int, Range(1, 100), "places"] = 1

        def compute_values(self, entries):
            return entries.rank <= self.depth

    @dataclass(frozen=True, kw_only=True, repr=False)
    class Wrong(Potential):
        """Breaks the rules."""

        name = "toy_wrong"
        kind: Annotated[str, "how"] = "nan"

        def compute_values(self, entries):
            if self.kind == "nan":
                return entries.rank
            return np.zeros((len(entries.slot), 2)) if self.kind == "shape" else entries.slot.astype(str)

    yield TopPlaces
    for name in ("toy_top", "toy_wrong"):
        registry.potentials.discard(name)


# -- values and inference -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("potential", "value"),
    [
        ("absence", lambda rank: float(rank is None)),
        ("reciprocal_rank", lambda rank: 0.0 if rank is None else 1 / (5 + rank)),
        ("reciprocal_rank(k=0)", lambda rank: 0.0 if rank is None else 1 / rank),
        ("log_rank(depth=3)", lambda rank: 0.0 if rank is None else max(0, 1 - math.log(rank) / math.log(4))),
    ],
)
def test_scores_by_definition(potential, value) -> None:
    preferences = Preferences.from_lists(LISTS)
    model = CrfAggregator(potentials=potential, passes=5).fit(preferences, LABELS)
    weights = {row.expert: row.weights[potential] for row in model.expert_weights()}
    consensus = model.aggregate(preferences)
    for query, lists in LISTS.items():
        for place in consensus[query]:
            expected = {e: weights[e] * value(ranks(query, e).get(place.item)) for e in lists}
            assert place.score == pytest.approx(sum(expected.values()), abs=1e-12)
            parts = model.explain_potentials(preferences, query, place.item)
            for expert, term in expected.items():
                assert parts[expert] == {potential: pytest.approx(term, abs=1e-12)}
            assert model.explain(preferences, query, place.item) == pytest.approx(expected)


@pytest.mark.parametrize("potentials", ["pairwise", "absence + pairwise + reciprocal_rank + log_rank"])
def test_the_sort_is_the_most_probable_ranking(potentials) -> None:
    """All rankings of up to six items: none has a lower energy than the sorted one."""
    random = np.random.default_rng(3)
    items = list("abcdef")
    lists = {
        f"q{n}": {e: random.permutation(items)[: random.integers(2, 7)].tolist() for e in ("x", "y", "z")}
        for n in range(8)
    }
    preferences = Preferences.from_lists(lists)
    labels = Labels.from_dict({q: {i: int(random.integers(3)) for i in items} for q in lists})
    model = CrfAggregator(potentials=potentials, passes=10, rate=0.5).fit(preferences, labels)
    for query, places in ((q, model.aggregate(preferences)[q]) for q in lists):
        score = {place.item: place.score for place in places}
        weigh = [1 / math.log2(p + 1) for p in range(1, len(score) + 1)]
        energy = {
            order: -sum(w * score[i] for w, i in zip(weigh, order, strict=True))
            for order in itertools.permutations(score)
        }
        assert energy[tuple(p.item for p in places)] == pytest.approx(min(energy.values())), query


def test_expected_losses_by_enumeration_with_any_number_of_columns() -> None:
    """One plain step on whole queries against finite differences of the expected loss over all rankings."""
    features = Features.from_rows(
        ["q1"] * 4 + ["q2"] * 3, list("abcd") + list("abe"), np.random.default_rng(0).normal(size=(7, 5))
    )
    preferences = Preferences.from_lists(LISTS)
    how = {"passes": 1, "optimizer": "sgd", "decay": 0.0, "average": 1, "batch": 10, "subset": 6, "l2": 0.0}
    model = CrfAggregator(potentials="absence + reciprocal_rank", rate=1e-6, **how)
    model.fit(preferences, LABELS, features)
    moved = {**by_name(model), **model.feature_weights()}

    def loss(changed: str, by: float) -> float:
        other = model_files.loads(model_files.dumps(model))
        other.weights_ = np.zeros_like(model.weights_)
        other.feature_weights_ = np.zeros_like(model.feature_weights_)
        if changed in features.names:
            other.feature_weights_[features.names.index(changed)] = by
        else:
            expert, name = changed.split(" ")
            columns = list(model.expert_weights()[0].weights)
            other.weights_[model.experts_.index(expert), columns.index(name)] = by
        total = 0.0
        for query in LISTS:
            places = sorted(
                other.aggregate(preferences, features)[query], key=lambda p: -LABELS.grade(query, p.item)
            )
            gain = [2.0 ** LABELS.grade(query, p.item) - 1 for p in places]
            discount = [1 / math.log2(p + 2) for p in range(len(places))]
            omega = [p.score for p in places]
            total += 1 - reference.compute_expected_metric(omega, gain, "sum", discount, len(places))
        return total / len(LISTS)

    slopes = {name: (loss(name, 1e-5) - loss(name, -1e-5)) / 2e-5 for name in moved}
    scale = dict.fromkeys(features.names, 1.0)
    for name in moved:
        if name not in scale:
            # steps are on potentials divided by their spread: weights move by slope / spread ** 2
            column = name.split(" ")[1]
            ratio = [-moved[n] / (1e-6 * slopes[n]) for n in moved if n.endswith(column) and slopes[n]]
            assert np.ptp(ratio) < 1e-4 * np.mean(ratio)
            scale[name] = float(np.mean(ratio))
    for name, weight in moved.items():
        assert weight == pytest.approx(-1e-6 * scale[name] * slopes[name], rel=1e-4, abs=1e-14), name


def by_name(model) -> dict[str, float]:
    return {f"{r.expert} {name}": w for r in model.expert_weights() for name, w in r.weights.items()}


def test_votes_have_no_rank() -> None:
    votes = Preferences.from_comparisons(["q"] * 3, ["e"] * 3, ["a", "a", "b"], ["b", "c", "c"])
    labels = Labels.from_dict({"q": {"a": 2, "b": 1, "c": 0}})
    model = CrfAggregator(potentials="pairwise + reciprocal_rank", passes=20).fit(votes, labels)
    assert model.aggregate(votes).ranking("q") == ["a", "b", "c"]
    assert model.explain_potentials(votes, "q", "a")["e"]["reciprocal_rank"] == 0.0


def test_lengths_scores_and_sizes_of_entries() -> None:
    from podium.methods.learned.potentials import collect_entries

    rated = Preferences.from_lists({"q": {"x": {"a": 9.0, "b": 4.0, "c": 1.0}, "y": {"b": 3.0}}})
    entries = collect_entries(rated, "log", 0.0, np.ones(2, np.bool_))
    items = [rated.index.items[s] for s in entries.slot]
    seen = {
        (rated.experts[e], i): (r, s, n, m)
        for e, i, r, s, n, m in zip(
            entries.expert, items, entries.rank, entries.score, entries.length, entries.items, strict=True
        )
    }
    assert seen["x", "b"] == (2, 4.0, 3, 3)
    assert seen["y", "b"] == (1, 3.0, 1, 3)
    assert np.isnan(seen["y", "a"][:2]).all()
    assert seen["y", "a"][2:] == (1, 3)


# -- own potentials, files ------------------------------------------------------------------------------------------


def test_own_potentials_are_learned_saved_and_loaded(toy, tmp_path) -> None:
    preferences = Preferences.from_lists(LISTS)
    model = podium.make("crf(potentials=absence + toy_top(depth=2), passes=10)").fit(preferences, LABELS)
    assert model.potentials == "absence + toy_top(depth=2)"
    assert list(model.expert_weights()[0].weights) == ["absence", "toy_top(depth=2)"]
    podium.save(model, tmp_path / "m")
    again = podium.load(tmp_path / "m")
    assert again.aggregate(preferences).scores.tobytes() == model.aggregate(preferences).scores.tobytes()
    assert again.expert_weights() == model.expert_weights()
    toy.columns = ("one", "two")
    with pytest.raises(InputError, match="returned bool values of shape"):
        again.aggregate(preferences)
    registry.potentials.discard("toy_top")
    with pytest.raises(ModelFileError, match="no potential is called 'toy_top'"):
        podium.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("potentials", "message"),
    [
        ("pairwize", "no potential is called 'pairwize'; did you mean pairwise"),
        ("pairwise + pairwise", "name each potential once"),
        ((), "potentials is"),
        (3, "potentials is 3"),
        ([3], "a potential is 3"),
        ("reciprocal_rank(c=3)", "potential reciprocal_rank has no parameter 'c'"),
        ("reciprocal_rank(k=-3)", "reciprocal_rank: k is -3"),
    ],
)
def test_wrong_names_are_refused(potentials, message) -> None:
    with pytest.raises(ParameterError, match=message.replace("(", r"\(")):
        CrfAggregator(potentials=potentials)


@pytest.mark.parametrize(
    ("kind", "message"), [("nan", "not finite"), ("shape", r"shape \(14, 2\)"), ("text", "returned <U")]
)
def test_wrong_values_are_refused(toy, kind, message) -> None:
    with pytest.raises(InputError, match=message):
        CrfAggregator(potentials=f"toy_wrong(kind={kind})").fit(Preferences.from_lists(LISTS), LABELS)


def test_all_ways_to_name_potentials() -> None:
    text = CrfAggregator(potentials="absence+reciprocal_rank(k=1e+1)")
    assert text.potentials == CrfAggregator(potentials=("absence", "reciprocal_rank(k=10.0)")).potentials
    assert repr(CrfAggregator(potentials=["absence", "pairwise"])) == "crf"
    assert podium.make(repr(text)).potentials == text.potentials


def test_files_of_earlier_versions_give_the_same_answers(tmp_path) -> None:
    """A file with three weights per expert and no word about potentials, against the definition."""
    random, preferences = np.random.default_rng(1), Preferences.from_lists(LISTS)
    weights = random.normal(size=(2, 3))
    learned = {
        "experts_": ["x", "y"], "weights_": weights, "group_": np.arange(2), "shared_": -1, "dropped_": [],
        "spread_": np.ones(2), "along_": np.ones(2), "losses_": np.zeros(1), "passes_": [1], "quality_": 0.0,
    }  # fmt: skip
    model_files.write_contents(tmp_path / "old", "crf", {"transform": "rank", "length_power": 1.0}, learned)
    model = podium.load(tmp_path / "old")
    by_expert = dict(zip("xy", map(tuple, weights.tolist()), strict=True))
    for query in LISTS:
        for place in model.aggregate(preferences)[query]:
            expected = reference.score(preferences, query, place.item, by_expert, "rank", 1.0)
            assert place.score == pytest.approx(expected, abs=1e-12)
    assert [row[1:4] for row in model.expert_weights()] == list(by_expert.values())
    assert model.feature_weights() == {}


# -- features -------------------------------------------------------------------------------------------------------


def described(seed: int, queries: int = 60):
    """Expert x is right in long queries (feature `long`), y in the others; `useful` follows the grades."""
    random = np.random.default_rng(seed)
    lists, grades, rows = {}, {}, []
    for n in range(queries):
        query, items, long = f"q{n}", [f"i{k}" for k in range(6)], float(n % 2)
        grade = {i: int(g) for i, g in zip(items, random.permutation([2, 1, 1, 0, 0, 0]), strict=True)}
        right, wrong = sorted(items, key=lambda i: -grade[i]), random.permutation(items).tolist()
        lists[query] = {"x": right if long else wrong, "y": wrong if long else right}
        grades[query] = grade
        rows += [(query, i, (grade[i] + random.normal(), random.normal(), long)) for i in items]
    columns = list(zip(*rows, strict=True))
    features = Features.from_rows(columns[0], columns[1], np.array(columns[2]), ["useful", "noise", "long"])
    return Preferences.from_lists(lists), Labels.from_dict(grades), features


def test_features_of_items_and_queries_are_used() -> None:
    train, new = described(0), described(1)
    model = CrfAggregator(passes=60).fit(*train)
    plain = CrfAggregator(passes=60).fit(*train[:2])
    weights = model.feature_weights()
    assert list(weights) == ["useful", "noise"]
    assert weights["useful"] > 2 * abs(weights["noise"])
    own = {row.expert: row.weights for row in model.expert_weights()}
    assert own["x"]["preferred * long"] > 0 > own["y"]["preferred * long"]
    score = [
        evaluate(m.aggregate(new[0], f), new[1], ["ndcg@5"]).mean()["ndcg@5"]
        for m, f in ((plain, None), (model, new[2]))
    ]
    assert score[1] > score[0] + 0.05


def test_explanations_add_up_with_features(tmp_path) -> None:
    preferences, labels, features = described(0, 8)
    model = CrfAggregator(passes=5).fit(preferences, labels, features)
    for place in model.aggregate(preferences, features)["q3"]:
        parts = model.explain(preferences, "q3", place.item, features)
        assert set(parts) == {"x", "y", FEATURES}
        assert sum(parts.values()) == pytest.approx(place.score)
        named = model.explain_potentials(preferences, "q3", place.item, features)
        assert sum(named["x"].values()) == pytest.approx(parts["x"])
    podium.save(model, tmp_path / "m")
    again = podium.load(tmp_path / "m").aggregate(preferences, features)
    assert again.scores.tobytes() == model.aggregate(preferences, features).scores.tobytes()


def test_features_are_checked() -> None:
    preferences, labels, features = described(0, 8)
    model = CrfAggregator(passes=2).fit(preferences, labels, features)
    with pytest.raises(InputError, match="fitted with the item features"):
        model.aggregate(preferences)
    with pytest.raises(InputError, match="fitted without item features"):
        CrfAggregator(passes=2).fit(preferences, labels).aggregate(preferences, features)
    shard = Dataset(preferences, labels, features)
    with pytest.raises(InputError, match="does not use item features in shards"):
        CrfAggregator(passes=2).fit_stream([shard])


def test_the_scale_of_features_does_not_matter() -> None:
    preferences, labels, features = described(0, 20)
    other = Features(features.index, features.values * [1000.0, 0.1, 7.0] + 5.0, features.names)
    one, two = (CrfAggregator(passes=10).fit(preferences, labels, f) for f in (features, other))
    assert one.feature_weights() == pytest.approx(two.feature_weights(), rel=1e-6)
    # every item is listed, so that the weights of absence multiply constants
    live = {name: w for name, w in by_name(one).items() if "absence" not in name}
    assert live == pytest.approx({name: by_name(two)[name] for name in live}, rel=1e-6)
