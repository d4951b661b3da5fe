"""Monotone retargeting: planted orders, invariances, bad input, and what it learns on real data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import kendalltau

from podium import Features, Labels, Preferences, load, make, save
from podium.core.errors import InputError, NotFittedError, ParameterError
from podium.methods.base import FEATURES
from podium.methods.feature.retargeting_search import compute_agreement_weights, compute_reliability
from podium_papers.retargeting import BASELINES
from podium_papers.retargeting_synthetic import SyntheticProblem, as_preferences, sample_problem


def features_of(one: SyntheticProblem, item: list[str], values=None) -> Features:
    return Features.from_rows(["q"] * len(item), item, one.features if values is None else values)


def learned(one: SyntheticProblem, spec: str = "retargeting", form: str = "score"):
    preferences, item = as_preferences(one, form)
    x = features_of(one, item)
    model = make(spec).fit(preferences, features=x)
    return model, model.aggregate(preferences, x).scores


# -- planted orders ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gaussian", "poisson"])
@pytest.mark.parametrize("form", ["score", "rank"])
def test_one_clean_list_among_noise_is_found_exactly(kind, form):
    for seed in range(6):
        one = sample_problem(kind, clean=True, seed=seed)
        model, scores = learned(one, form=form)
        assert kendalltau(scores, one.truth)[0] == pytest.approx(1.0, abs=1e-12)
        assert list(model.expert_weights().values()) == [1.0] + [0.0] * 9
        assert model.iterations_ <= 20
        assert model.mode_ == "settled"


@pytest.mark.parametrize("method", BASELINES.values())
def test_baselines_do_not_find_it(method):
    one = sample_problem("gaussian", clean=True, seed=0)
    preferences, _ = as_preferences(one)
    assert kendalltau(make(method).aggregate(preferences).scores, one.truth)[0] < 0.95


@pytest.mark.parametrize("kind", ["gaussian", "poisson"])
def test_without_a_clean_list_the_features_lead(kind):
    taus, out = [], []
    for seed in range(8):
        one = sample_problem(kind, clean=False, seed=seed)
        model, scores = learned(one)
        taus.append(kendalltau(scores, one.truth)[0])
        out += [w == 0 for w in list(model.expert_weights().values())[-3:]]
    assert np.mean(taus) >= 0.95
    assert np.mean(out) >= 0.9


@pytest.mark.parametrize("loss", ["poisson", "kl"])
def test_the_other_losses_find_the_clean_list_too(loss):
    one = sample_problem("poisson", clean=True, seed=1)
    _, scores = learned(one, f"retargeting(loss={loss})")
    assert kendalltau(scores, one.truth)[0] == pytest.approx(1.0, abs=1e-12)


def test_a_list_and_its_reverse_are_told_apart():
    p = Preferences.from_lists({"q": {1: "abcd", 2: "bacd", 3: "dcba"}})
    x = Features.from_rows(["q"] * 4, list("abcd"), [[5, 3], [7, -1], [2, 2], [6, -4]], ["f", "g"])
    model = make("retargeting").fit(p, features=x)
    assert model.aggregate(p, x).ranking("q") == ["a", "b", "c", "d"]
    assert model.expert_weights()[3] == 0


def test_features_that_say_nothing_are_not_believed():
    one = sample_problem("gaussian", clean=False, seed=3)
    preferences, item = as_preferences(one)
    x = features_of(one, item, np.random.default_rng(0).normal(size=(len(item), 5)))
    model = make("retargeting").fit(preferences, features=x)
    assert model.mode_ == "lists"
    assert model.explained_ < 0.5
    alone = make("retargeting").aggregate(preferences)
    assert np.allclose(model.aggregate(preferences, x).scores, alone.scores)
    assert any("trust" in note for note in model.aggregate(preferences, x).diagnostics.notes)


def test_agreement_weights_are_the_first_principal_direction():
    random = np.random.default_rng(0)
    shared = random.normal(size=400)
    table = np.stack([shared * a + random.normal(size=400) for a in (3.0, 2.0, 1.0)], axis=1)
    first = np.abs(np.linalg.eigh(table.T @ table)[1][:, -1])
    assert np.allclose(compute_agreement_weights(table), first / first.sum(), atol=1e-6)


# -- invariances ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hard() -> SyntheticProblem:
    return sample_problem("gaussian", clean=False, seed=5)


def test_monotone_transforms_of_a_list(hard):
    changed = hard.lists.copy()
    changed[:, 0], changed[:, 3] = np.exp(changed[:, 0]), changed[:, 3] ** 3 + 7
    _, scores = learned(hard)
    _, other = learned(SyntheticProblem(hard.features, hard.truth, changed))
    assert np.array_equal(scores, other)


def test_scale_and_shift_of_features(hard):
    scale = np.array([1e-3, 5.0, 1e4, *[2.0] * 7])
    _, scores = learned(hard)
    _, other = learned(SyntheticProblem(hard.features * scale + 11.0, hard.truth, hard.lists))
    assert np.allclose(scores, other, atol=1e-8)


def test_the_order_of_items_and_lists(hard):
    random = np.random.default_rng(0)
    rows, columns = random.permutation(len(hard.truth)), random.permutation(hard.lists.shape[1])
    _, scores = learned(hard)
    _, other = learned(SyntheticProblem(hard.features[rows], hard.truth[rows], hard.lists[rows][:, columns]))
    assert np.allclose(scores[rows], other, atol=1e-7)


def test_a_list_given_twice_counts_once(hard):
    twice = np.column_stack((hard.lists, hard.lists[:, 2], hard.lists[:, 2]))
    model, scores = learned(hard)
    more, other = learned(SyntheticProblem(hard.features, hard.truth, twice))
    assert np.allclose(scores, other, atol=1e-9)
    weights, split = list(model.expert_weights().values()), list(more.expert_weights().values())
    assert split[2] == pytest.approx(weights[2] / 3)


# -- forms of use -----------------------------------------------------------------------------------------------------


def two_queries():
    random = np.random.default_rng(4)
    x = random.normal(size=(60, 4))
    truth = x @ np.array([1.0, -1.0, 0.5, 0.2])
    lists = [truth, truth + random.normal(size=60), random.normal(size=60)]
    query, item = ["q1"] * 40 + ["q2"] * 20, [f"i{k}" for k in range(60)]
    p = Preferences.from_rows(
        np.repeat(query, 3), ["a", "b", "c"] * 60, np.repeat(item, 3), score=np.stack(lists, axis=1).ravel()
    )
    return p, Features.from_rows(query, item, x, ["w", "x", "y", "z"]), truth


@pytest.mark.parametrize("spec", ["retargeting", "retargeting(pooled=False)"])
def test_weights_of_all_queries_or_of_each(spec):
    p, x, truth = two_queries()
    scores = make(spec).aggregate(p, x).scores
    for rows in (slice(0, 40), slice(40, 60)):
        assert (
            kendalltau(scores[rows], truth[np.argsort([f"i{k}" for k in range(60)][rows]) + rows.start])[0]
            > 0.99
        )


def test_what_was_fitted_serves_new_queries_and_is_saved(tmp_path):
    p, x, _ = two_queries()
    model = make("retargeting").fit(p.select(["q1"]), features=x)
    there = model.aggregate(p.select(["q2"]), x)
    save(model, tmp_path / "m.podium")
    again = load(tmp_path / "m.podium").aggregate(p.select(["q2"]), x)
    assert np.array_equal(there.scores, again.scores)
    with pytest.raises(NotFittedError):
        make("retargeting").expert_weights()
    silent = Preferences.from_lists({"q": {"a": ["i1", "i2"], "a stranger who says nothing": []}})
    less = make("retargeting").fit(p).aggregate(silent)
    assert less.ranking("q") == ["i1", "i2"]
    assert less.expert_weights is not None
    assert less.expert_weights[1] == 0
    with pytest.raises(ParameterError, match="was not fitted with expert 'd'"):
        model.aggregate(Preferences.from_lists({"q": {"d": "ab"}}), x)
    with pytest.raises(InputError, match="fitted with the item features"):
        model.aggregate(p)


def test_explanations_add_up_to_the_score():
    p, x, _ = two_queries()
    model = make("retargeting(side=both)")
    told = model.explain(p, "q1", "i7", x)
    assert FEATURES in told
    consensus = model.aggregate(p, x)
    score = next(r.score for r in consensus["q1"] if r.item == "i7")
    assert sum(told.values()) == pytest.approx(score)


def test_one_list_and_features_that_differ_count_alike():
    """With nobody to compare the list with, nothing says whether it or the features are right: both count."""
    random = np.random.default_rng(1)
    x = random.normal(size=(30, 1))
    item = [f"i{k:02d}" for k in range(30)]
    score = x[:, 0] + 0.4 * random.normal(size=30)
    p = Preferences.from_rows(["q"] * 30, ["only"] * 30, item, score=score)
    model = make("retargeting").fit(p, features=Features.from_rows(["q"] * 30, item, x))
    assert model.mode_ == "open"
    assert model.balance_.tolist() == [0.5, 0.5]


def test_known_labels_steer_the_weights():
    random = np.random.default_rng(1)
    x = random.normal(size=(50, 2))
    item = [f"i{k:02d}" for k in range(50)]
    mixed = x @ np.array([[2.0, -1.0], [1.0, 2.0]])  # two lists that the features explain equally well
    p = Preferences.from_rows(["q"] * 100, ["one", "two"] * 50, np.repeat(item, 2), score=mixed.ravel())
    f = Features.from_rows(["q"] * 50, item, x)
    grades = {i: float(np.digitize(v, [-1, 0, 1])) for i, v in zip(item[:30], mixed[:30, 1], strict=True)}
    model = make("retargeting").fit(p, Labels.from_dict({"q": grades}), f)
    assert model.expert_weights()["two"] > 0.9


@pytest.mark.parametrize("useful", [True, False])
def test_the_known_order_is_kept_and_its_effect_is_stated(useful, tmp_path):
    one = sample_problem("gaussian", clean=False, seed=4)
    p, item = as_preferences(one)
    random = np.random.default_rng(0)
    x = features_of(one, item, None if useful else random.normal(size=(len(item), 3)))
    grades = np.digitize(one.truth, np.quantile(one.truth, [0.3, 0.6, 0.9])) + 0.0
    grades = dict(zip(item, random.permutation(grades).tolist(), strict=True))  # against all evidence
    grades = {i: grades[i] for i in item[::4]}
    model = make("retargeting").fit(p, Labels.from_dict({"q": grades}), x)
    consensus = model.aggregate(p, x)
    ranking = [grades[i] for i in consensus.ranking("q") if i in grades]
    assert ranking == sorted(ranking, reverse=True)
    effect = "steer the weights" if useful else "have no effect on the weights"
    assert any(effect in note and "25 labeled items" in note for note in consensus.diagnostics.notes)
    save(model, tmp_path / "m.podium")
    assert np.array_equal(load(tmp_path / "m.podium").aggregate(p, x).scores, consensus.scores)
    # the items without a label keep the places they have without the exchange
    plain = make("retargeting").fit(p, Labels.from_dict({"q": grades}), x)
    plain.known_ = {}
    others = [i if i not in grades else None for i in consensus.ranking("q")]
    assert others == [i if i not in grades else None for i in plain.aggregate(p, x).ranking("q")]


def test_one_of_the_lists_that_end_early_does_not_displace_the_others():
    """The features order the items of any single short list: that is no reason to discard the others."""
    gains = []
    for draw in range(5):
        random = np.random.default_rng(draw)
        x = random.normal(size=(100, 8))
        truth = x @ random.normal(size=8)
        scores = truth[:, None] + 0.6 * truth.std() * random.normal(size=(100, 6))
        short = np.where((-scores).argsort(axis=0).argsort(axis=0) < 20, scores, np.nan)
        item = np.array([f"item {k:03d}" for k in range(100)], object)
        at, which = np.nonzero(~np.isnan(short))
        p = Preferences.from_rows(
            ["q"] * len(at), which, item[at], score=short[at, which], candidates=(["q"] * 100, item)
        )
        features = Features.from_rows(["q"] * 100, item, x)
        model = make("retargeting").fit(p, features=features)
        assert (model.weights_ > 0).sum() > 1
        with_features, without = model.aggregate(p, features).scores, make("retargeting").aggregate(p).scores
        gains.append(kendalltau(with_features, truth).statistic - kendalltau(without, truth).statistic)
    assert np.mean(gains) > 0


def test_the_gate_allows_for_noise_in_the_lists():
    """Each list alone is mostly noise; the features determine the true order, and are used."""
    taus = []
    for seed in range(4):
        random = np.random.default_rng(seed)
        x = random.normal(size=(100, 8))
        truth = x @ random.normal(size=8)
        one = SyntheticProblem(x, truth, truth[:, None] + 3 * truth.std() * random.normal(size=(100, 6)))
        model, scores = learned(one)
        p, _ = as_preferences(one)
        taus.append((kendalltau(scores, truth)[0], kendalltau(make("borda").aggregate(p).scores, truth)[0]))
        assert model.mode_ != "lists"
    ours, borda = np.mean(taus, axis=0)
    assert ours > borda + 0.2


def test_reliability_is_the_mean_over_all_split_halves():
    random = np.random.default_rng(0)
    table = random.normal(size=200)[:, None] + random.normal(size=(200, 6)) * np.linspace(0.5, 2, 6)
    table -= table.mean(axis=0)
    halves = []
    for chosen in itertools.combinations(range(6), 3):
        a = table[:, list(chosen)].sum(axis=1)
        b = table.sum(axis=1) - a
        halves.append(4 * np.mean(a * b) / np.mean((a + b) ** 2))
    assert compute_reliability(table) == pytest.approx(np.mean(halves))
    assert compute_reliability(table[:, :1]) == 1


@pytest.mark.parametrize(("best", "expected"), [(True, "below"), (False, "mean")])
def test_lists_that_end_early_are_told_from_lists_of_random_items(best, expected):
    random = np.random.default_rng(2)
    truth = random.normal(size=100)
    lists = truth[:, None] + 0.6 * random.normal(size=(100, 6))
    key = -lists if best else random.random(lists.shape)
    at, which = np.nonzero(key.argsort(axis=0).argsort(axis=0) < (20 if best else 50))
    p = Preferences.from_rows(
        ["q"] * len(at), which, at, score=lists[at, which], candidates=(["q"] * 100, np.arange(100))
    )
    model = make("retargeting").fit(p)
    assert model.missing_ == expected
    tau = {}
    for rule in ("auto", "below", "mean"):
        result = make(f"retargeting(missing={rule})").aggregate(p)
        tau[rule] = kendalltau([result.scores[p.index.slot("q", i)] for i in range(100)], truth)[0]
    assert tau["auto"] == tau[expected] == max(tau.values())


@pytest.mark.parametrize("rule", ["below", "mean"])
@pytest.mark.parametrize("pooled", [True, False])
def test_a_chosen_place_of_unlisted_items_overrides_that_of_the_input(rule, pooled):
    """TREC runs, for example, have unlisted items below the listed ones unless something else is chosen."""
    random = np.random.default_rng(0)
    lists = random.normal(size=(40, 1)) + random.normal(size=(40, 5))
    items = [f"d{i}" for i in range(40)]
    orders = {f"l{j}": [items[i] for i in np.argsort(-lists[:, j])[:8]] for j in range(5)}
    unknown, below = (
        Preferences.from_lists({"q": orders}).with_unlisted(reading) for reading in ("unknown", "below")
    )
    method = make(f"retargeting(missing={rule}, pooled={pooled})")
    assert method.aggregate(unknown).ranking("q") == method.aggregate(below).ranking("q")
    assert make("retargeting").fit(below).missing_ == "below"


def test_a_margin_that_cannot_hold_is_refused():
    one = sample_problem("gaussian", clean=True, seed=0)
    with pytest.raises(ParameterError, match=r"can differ by at most 0\.035"):
        learned(one, "retargeting(margin=0.5)")
    _, scores = learned(one, "retargeting(margin=0.01)")
    assert kendalltau(scores, one.truth)[0] > 0.95


def test_l1_on_features_makes_them_sparse():
    one = sample_problem("gaussian", clean=True, seed=2)
    wide = np.column_stack((one.features, np.random.default_rng(0).normal(size=(100, 20))))
    preferences, item = as_preferences(one)
    x = features_of(one, item, wide)
    counts = [
        sum(
            abs(w) > 1e-9
            for w in make(f"retargeting(feature_l1={l1})")
            .fit(preferences, features=x)
            .feature_weights()
            .values()
        )
        for l1 in (0.0, 0.1)
    ]
    assert counts[1] < counts[0]


# -- bad input --------------------------------------------------------------------------------------------------------


def test_constant_features_and_missing_values_are_neutral(hard):
    preferences, item = as_preferences(hard)
    _, plain = learned(hard)
    constant = np.column_stack((hard.features, np.full(len(item), 3.0)))
    model = make("retargeting").fit(preferences, features=features_of(hard, item, constant))
    assert list(model.feature_weights().values())[-1] == pytest.approx(0.0, abs=1e-12)
    holes = hard.features.copy()
    holes[::7, 0] = np.nan
    x = features_of(hard, item, holes)
    scores = make("retargeting").aggregate(preferences, x).scores
    assert np.isfinite(scores).all()
    assert kendalltau(scores, plain)[0] > 0.8


def test_more_features_than_items_are_not_believed():
    p = Preferences.from_lists({"q": {1: "abcd", 2: "abdc", 3: "bacd"}})
    x = Features.from_rows(["q"] * 4, list("abcd"), np.random.default_rng(0).normal(size=(4, 9)))
    model = make("retargeting").fit(p, features=x)
    assert (model.mode_, model.explained_) == ("lists", 0.0)
    assert model.aggregate(p, x).ranking("q") == ["a", "b", "c", "d"]


def test_a_list_of_one_item_and_features_of_other_items():
    p = Preferences.from_lists({"q": {1: "abcd", 2: "abdc", 3: "c"}})
    assert make("retargeting").aggregate(p).ranking("q")[0] == "a"
    x = Features.from_rows(["q"], ["elsewhere"], [[1.0]])
    assert make("retargeting").aggregate(p, x).ranking("q")[0] == "a"


def test_labels_need_pooled_weights():
    p = Preferences.from_lists({"q": {1: "ab"}})
    with pytest.raises(ParameterError, match="pooled=True"):
        make("retargeting(pooled=False)").fit(p, Labels.from_dict({"q": {"a": 1}}))


# -- real data --------------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize("name", ["ohsumed", "mq2008"])
def test_above_every_baseline_at_every_depth(name, data_dir):
    from podium_papers import reproduce

    [found] = reproduce("retargeting", data_dir, sets=[name]).sets
    ours, *others = found.rows
    assert len(others) >= 9
    for row in others:
        assert all(a > b for a, b in zip(ours.ours, row.ours, strict=True)), row.name
