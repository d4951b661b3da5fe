"""Learning from beliefs about features: known answers, what must not matter, bad input, files, and real queries."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from podium import Features, Labels, Preferences, load, make, save
from podium.core.errors import InputError, ModelFileError, NotFittedError, ParameterError, PodiumWarning
from podium.kernels.belief_lambdas import compute_belief_lambdas
from podium.methods.feature.feature_model import normalize_by_query
from podium.methods.feature.labelled_features import LabelledFeatures
from podium.methods.feature.labelled_features_aggregator import LabelledFeaturesAggregator
from podium.methods.learned.lambdarank import LambdaRank

NAMES = ["good", "along", "noise", "same"]


def made(seed=0, queries=12, items=9):
    """The second feature goes along with the first, the third is noise, the fourth constant in every query."""
    random = np.random.default_rng(seed)
    q, i = np.repeat(np.arange(queries), items), np.tile(np.arange(items), queries)
    x = random.normal(size=(len(q), 4))
    x[:, 1] = x[:, 0] + 0.3 * x[:, 1]
    x[:, 3] = q
    return q, i, x


def features(seed=0, **sizes):
    q, i, x = made(seed, **sizes)
    return Features.from_rows(q, i, x, NAMES)


def test_what_goes_along_with_a_belief_counts_and_the_rest_does_not():
    model = LabelledFeatures(beliefs={"good": 2}).fit(features())
    w = model.feature_weights()
    assert list(w) == NAMES
    assert w["good"] > w["along"] > 5 * abs(w["noise"])
    assert w["same"] == 0
    q, i, x = made()
    turned = Features.from_rows(
        q, i, x * [-1, 1, 1, 1], NAMES
    )  # a belief against what is bad is the same belief
    against = LabelledFeatures(beliefs={"good": -2}).fit(turned).feature_weights()
    assert against == pytest.approx(w | {"good": -w["good"]}, abs=1e-9)


@pytest.mark.parametrize(("l2", "kept", "cutoff"), [(0.5, 0.5, 10), (0.1, 0.0, 3), (2.0, 1.0, 10**6)])
def test_the_weights_are_a_stationary_point_of_the_stated_objective(l2, kept, cutoff):
    x = features(3)
    model = LabelledFeatures(beliefs={"good": 2, "noise": -1}, l2=l2, kept=kept, cutoff=cutoff).fit(x)
    assert model.converged_
    starts = x.index.starts
    values, w = normalize_by_query(starts, x.values), np.array(list(model.feature_weights().values()))
    beliefs = np.array([2.0, 0, -1, 0])
    found = compute_belief_lambdas(values @ w, values @ beliefs, starts, cutoff)
    pull = values.T @ (found.slope / np.repeat(found.mass, np.diff(starts))) / len(x)
    np.testing.assert_allclose(pull, l2 * (w - kept * beliefs), atol=1e-6)
    assert model.history[-1]["slope"] < 1e-6


def test_the_gradient_with_respect_to_weights_by_finite_differences():
    x = features(4, queries=3, items=6)
    starts = x.index.starts
    values, beliefs = normalize_by_query(starts, x.values), np.array([2.0, 0, 0, 0])
    w = np.array([0.7, 0.2, -0.1, 0.3])
    found = compute_belief_lambdas(values @ w, values @ beliefs, starts, 4)
    gradient = values.T @ found.slope
    for k in range(4):
        step = np.eye(4)[k] * 1e-7  # too small to change an order, so the pair weights stay
        up, down = (
            compute_belief_lambdas(values @ (w + s * step), values @ beliefs, starts, 4).loss.sum()
            for s in (1, -1)
        )
        assert gradient[k] == pytest.approx((down - up) / 2e-7, abs=1e-5)


def test_all_of_the_beliefs_kept_is_the_graded_sum_and_none_is_the_published_rule():
    x = features()
    kept = LabelledFeatures(beliefs={"good": 2}, kept=1.0).fit(x)
    assert kept.feature_weights() == pytest.approx({"good": 2, "along": 0, "noise": 0, "same": 0}, abs=1e-9)
    np.testing.assert_allclose(kept.predict(x), kept.naive(x), atol=1e-9)
    none = LabelledFeatures(beliefs={"good": 2}, kept=0.0, l2=1e6).fit(x)
    # under a heavy penalty only the direction in which the loss falls from 0 is left
    w = np.array(list(none.feature_weights().values()))
    assert np.abs(w).max() < 1e-4
    assert min(w[0], w[1]) > 5 * abs(w[2])


# -- what must not matter ----------------------------------------------------------------------------------------


def test_scales_shifts_rows_queries_and_names_do_not_matter():
    q, i, x = made()
    model = LabelledFeatures(beliefs={"good": 2, "noise": -1}).fit(features())
    order = np.random.default_rng(1).permutation(len(q))
    moved = x * [3.0, 0.001, 1e6, 1.0] + [5.0, -1.0, 1e6, 0.0]
    other = Features.from_rows(q[order], i[order], moved[order], NAMES)
    again = LabelledFeatures(beliefs={"good": 2, "noise": -1}).fit(other)
    assert again.feature_weights() == pytest.approx(model.feature_weights(), abs=1e-8)
    renamed = Features.from_rows(q, [f"item {(7 * k) % 9}" for k in i], x, NAMES)
    assert LabelledFeatures(beliefs={"good": 2, "noise": -1}).fit(renamed).feature_weights() == pytest.approx(
        model.feature_weights(), abs=1e-9
    )
    same_rows = Features.from_rows(q[order], i[order], x[order], NAMES)
    same = LabelledFeatures(beliefs={"good": 2, "noise": -1}).fit(same_rows)
    exact = LabelledFeatures(beliefs={"good": 2, "noise": -1}).fit(features())
    assert same.feature_weights() == exact.feature_weights()


def test_columns_may_come_in_any_order_and_a_copy_shares_the_weight():
    q, i, x = made()
    w = LabelledFeatures(beliefs={"good": 2}).fit(features()).feature_weights()
    turned = Features.from_rows(q, i, x[:, ::-1], NAMES[::-1])
    assert LabelledFeatures(beliefs={"good": 2}).fit(turned).feature_weights() == pytest.approx(w, abs=1e-8)
    doubled = Features.from_rows(q, i, np.column_stack((x, x[:, 1])), [*NAMES, "along again"])
    copies = LabelledFeatures(beliefs={"good": 2}).fit(doubled).feature_weights()
    assert copies["along"] == pytest.approx(copies["along again"], abs=1e-9)
    assert 0 < copies["along"] < w["along"]


def test_missing_values_are_neutral():
    q, i, x = made()
    x[::5, 0] = np.nan
    x[:9, 1] = np.nan
    some = Features.from_rows(q, i, x, NAMES)
    model = LabelledFeatures(beliefs={"good": 2}).fit(some)
    values = normalize_by_query(some.index.starts, some.values)
    assert np.isfinite(values).all()
    assert (values[np.isnan(some.values)] == 0).all()
    assert np.isfinite(model.predict(some)).all()


def test_normalised_columns_stay_finite_and_have_a_mean_of_0():
    starts = np.array([0, 3, 3, 4, 7])
    x = np.array([1e300, -1e300, 0, 5, 1e-310, 2e-310, np.nan])[:, None]
    for how in ("range", "deviation"):
        found = normalize_by_query(starts, x, how)[:, 0]
        assert np.isfinite(found).all()
        assert found[:3].sum() == pytest.approx(0)
        assert found[3] == found[6] == 0
    assert np.ptp(normalize_by_query(starts, x)[:3]) == pytest.approx(1)
    assert not normalize_by_query(np.array([0, 4]), np.full((4, 1), 0.1)).any()


# -- few data, bad input -----------------------------------------------------------------------------------------


def test_more_features_than_items_and_queries_of_one_item():
    random = np.random.default_rng(0)
    x = Features.from_rows(["q"] * 4 + ["r"], [*"abcd", "e"], random.normal(size=(5, 60)))
    model = LabelledFeatures(beliefs={"f1": 1}).fit(x)
    assert model.converged_
    assert np.isfinite(model.predict(x)).all()
    assert model.predict(x)[4] == 0
    assert len(model.rank(x).ranking("r")) == 1


def test_beliefs_that_tell_nothing_apart_are_said_and_kept():
    with pytest.warns(PodiumWarning, match="distinguish two items"):
        model = LabelledFeatures(beliefs={"same": 2}).fit(features())
    assert model.feature_weights() == pytest.approx({"good": 0, "along": 0, "noise": 0, "same": 1}, abs=1e-9)


@pytest.mark.parametrize(
    ("beliefs", "words"),
    [
        ({"goood": 1}, "did you mean good"),
        ({"good": 3}, "numbers from -2"),
        ({"good": np.nan}, "numbers from -2"),
        ({"good": "2"}, "numbers from -2"),
        ({"good": True}, "numbers from -2"),
        ({"good": 0, "noise": 0.0}, "nonzero grade"),
        ({}, "nonzero grade"),
        ("good", "by name"),
    ],
)
def test_bad_beliefs_are_told(beliefs, words):
    with pytest.raises(ParameterError, match=words):
        LabelledFeatures(beliefs=beliefs).fit(features())


def test_a_wrong_name_among_many_does_not_print_them_all():
    x = Features.from_rows(["q"] * 2, ["a", "b"], np.eye(2, 300), [f"column {k}" for k in range(300)])
    with pytest.raises(ParameterError, match="there are 300") as told:
        LabelledFeatures(beliefs={"zzz": 1}).fit(x)
    assert len(str(told.value)) < 400


def test_other_columns_and_no_fit_are_told():
    model = LabelledFeatures(beliefs={"good": 1})
    with pytest.raises(NotFittedError, match="has not been fitted"):
        model.predict(features())
    model.fit(features())
    q, i, x = made()
    with pytest.raises(InputError, match="same columns"):
        model.predict(Features.from_rows(q, i, x[:, :3], NAMES[:3]))
    with pytest.raises(ParameterError, match="kept is 2"):
        LabelledFeatures(beliefs={"good": 1}, kept=2)
    with pytest.raises(InputError, match="no items"):
        LabelledFeatures(beliefs={"f1": 1}).fit(Features.from_rows([], [], np.zeros((0, 1))))


def test_a_limit_of_passes_is_told():
    model = LabelledFeatures(beliefs={"good": 2}, passes=1).fit(features())
    assert not model.converged_
    assert len(model.history) == 1


def test_models_are_saved_and_read_back(tmp_path):
    x = features()
    model = LabelledFeatures(beliefs={"good": 2, "noise": -0.5}).fit(x)
    save(model, tmp_path / "m.podium")
    again = load(tmp_path / "m.podium")
    assert isinstance(again, LabelledFeatures)
    assert again.beliefs == model.beliefs
    assert again.feature_weights() == model.feature_weights()
    assert again.history == model.history
    assert np.array_equal(again.predict(x), model.predict(x))
    ranker = LambdaRank(passes=3, prior={"good": 1.0}).fit(
        x, Labels(x.index, (x.values[:, 0] > 0).astype(float))
    )
    save(ranker, tmp_path / "l.podium")
    assert np.array_equal(load(tmp_path / "l.podium").predict(x), ranker.predict(x))
    with pytest.raises(ModelFileError, match="exists"):
        save(model, tmp_path / "m.podium")


# -- the aggregator ----------------------------------------------------------------------------------------------

LISTS = {"q": {"x": ["a", "b", "c", "d"], "y": ["b", "a", "d"]}, "r": {"x": ["e", "f"], "y": ["f", "e", "g"]}}
ABOUT = Features.from_rows([*"qqqqrrr"], [*"abcdefg"], [[5.0], [1], [9], [2], [1], [3], [np.nan]], ["clicks"])


def test_the_aggregator_explains_its_scores_exactly():
    p = Preferences.from_lists(LISTS)
    for method, about in (
        (LabelledFeaturesAggregator(), None),
        (LabelledFeaturesAggregator(beliefs={"x": 1, "clicks": 2}), ABOUT),
        (LabelledFeaturesAggregator(beliefs={"x": 1, "clicks": 2}).fit(p, None, ABOUT), ABOUT),
    ):
        found = method.aggregate(p, about)
        for query in p.queries:
            for place in found[query]:
                parts = method.explain(p, query, place.item, about)
                assert list(parts) == ["x", "y"] + ["clicks"] * (about is not None)
                assert sum(parts.values()) == pytest.approx(place.score, abs=1e-9)
        assert found.expert_weights is not None
        assert len(found.expert_weights) == 2
        assert found.diagnostics.converged


def test_a_belief_in_a_feature_or_against_an_expert_changes_the_order():
    p = Preferences.from_lists(LISTS)
    assert make("labelled_features(beliefs={'clicks': 2})").aggregate(p, ABOUT).ranking("q")[0] == "c"
    assert LabelledFeaturesAggregator(beliefs={"x": 2}).aggregate(p).ranking("q") == ["a", "b", "c", "d"]
    assert LabelledFeaturesAggregator(beliefs={"x": -2}).aggregate(p).ranking("q") == ["d", "c", "b", "a"]
    assert make(repr(LabelledFeaturesAggregator(beliefs={"x": -2}))).beliefs == {"x": -2}


def test_names_that_clash_unknown_experts_and_missing_features_are_told():
    p = Preferences.from_lists(LISTS)
    both = Features(ABOUT.index, ABOUT.values, ("x",))
    with pytest.raises(ParameterError, match="is an expert and a feature"):
        LabelledFeaturesAggregator().aggregate(p, both)
    with pytest.raises(ParameterError, match="no feature 'z'"):
        LabelledFeaturesAggregator(beliefs={"z": 1}).aggregate(p)
    fitted = LabelledFeaturesAggregator(beliefs={"clicks": 1}).fit(p, None, ABOUT)
    with pytest.raises(InputError, match="fitted with the item features"):
        fitted.aggregate(p)
    with pytest.raises(ParameterError, match="not fitted with expert 'new'"):
        fitted.aggregate(Preferences.from_lists({"q": {"new": ["a"]}}), ABOUT)
    with pytest.raises(InputError, match="fitted without item features"):
        LabelledFeaturesAggregator().fit(p).aggregate(p, ABOUT)


def test_what_was_fitted_is_used_for_other_queries_and_saved(tmp_path):
    p = Preferences.from_lists(LISTS)
    fitted = LabelledFeaturesAggregator(beliefs={"x": 2, "y": -1}).fit(p)
    new = Preferences.from_lists({"s": {"x": ["k", "l"], "y": ["l", "k"]}})
    assert fitted.aggregate(new).ranking("s") == ["k", "l"]
    save(fitted, tmp_path / "m.podium")
    again = load(tmp_path / "m.podium").aggregate(new)
    assert np.array_equal(again.scores, fitted.aggregate(new).scores)
    numbers = Preferences.from_lists({"q": {1: ["a", "b"], 2: ["b", "a"]}})
    assert LabelledFeaturesAggregator(beliefs={"2": 2}).aggregate(numbers).ranking("q") == ["b", "a"]


# -- priors ------------------------------------------------------------------------------------------------------


def labelled(seed=0):
    x = features(seed)
    return x, Labels(x.index, np.digitize(x.values[:, 2] + 0.2 * x.values[:, 0], [0.0, 1.0]).astype(float))


def test_a_prior_holds_as_strongly_as_its_penalty():
    x, labels = labelled()
    prior = {"good": 1.0, "noise": -1.0}
    firm = (
        LambdaRank(prior=prior, l2=1e4, optimizer="sgd", rate=1e-5, passes=50)
        .fit(x, labels)
        .feature_weights()
    )
    assert firm == pytest.approx({"good": 1, "along": 0, "noise": -1, "same": 0}, abs=1e-3)
    loose = LambdaRank(prior=prior, l2=0.0, passes=200, rate=0.05).fit(x, labels).feature_weights()
    assert loose["noise"] > 0
    nothing = LambdaRank(prior=dict.fromkeys(NAMES, 0.0), l2=0.1, passes=20).fit(x, labels).feature_weights()
    assert nothing == LambdaRank(l2=0.1, passes=20).fit(x, labels).feature_weights()


def test_a_prior_keeps_its_units_when_features_are_standardized():
    x, labels = labelled()
    wide = Features(x.index, x.values * [100.0, 1, 1, 1], x.names)
    firm = LambdaRank(prior={"good": 1.0}, standardize=True, l2=1e4, optimizer="sgd", rate=1e-5, passes=20)
    assert firm.fit(wide, labels).feature_weights()["good"] == pytest.approx(1, abs=1e-3)


def test_a_believed_model_is_a_prior_and_misuse_is_told():
    x, labels = labelled()
    believed = LabelledFeatures(beliefs={"good": 2}).fit(x)
    model = LambdaRank(prior=believed, normalize="range", l2=0.5, passes=10).fit(x, labels)
    assert model.prior == believed.feature_weights()
    with pytest.raises(ParameterError, match="normalize='range'"):
        LambdaRank(prior=believed)
    with pytest.raises(ParameterError, match="linear scorer"):
        LambdaRank(prior={"good": 1.0}, hidden=4)
    with pytest.raises(ParameterError, match="did you mean good"):
        LambdaRank(prior={"god": 1.0}).fit(x, labels)
    with pytest.raises(ParameterError, match="finite number"):
        LambdaRank(prior={"good": np.inf})
    with pytest.raises(ParameterError, match="weights by feature"):
        LambdaRank(prior=3)


# -- real queries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("beliefs", "least"), [("one belief", 0.02), ("five beliefs", 0.005)])
def test_the_learned_model_is_above_the_graded_sum_on_real_queries(data_dir, beliefs, least):
    from podium_papers.belief_curves import BELIEFS, load_problem

    problem = load_problem("mslr-web10k-sample", data_dir)
    model = LabelledFeatures(beliefs=BELIEFS[problem.name][beliefs])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(problem.features)
    naive = np.array([model.beliefs.get(name, 0.0) for name in problem.features.names])
    before, after = problem.measure_quality(naive).mean(), problem.measure_quality(model.weight_vector).mean()
    assert after > before + least
    if beliefs == "one belief":
        assert before == pytest.approx(0.3004, abs=5e-5)  # a prototype's figure for the graded sum
