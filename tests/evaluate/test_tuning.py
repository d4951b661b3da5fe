"""Tuning: the space comes from the declarations, the choice is the right one, and the estimate is honest."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lessons import lesson
from podium import Dataset, Features, Labels, Preferences, make, models
from podium.core import params, registry
from podium.core.errors import InputError, ParameterError
from podium.core.params import Choice, Range, Tune
from podium.data.demo import demo
from podium.evaluate import evaluate, expert_rankings, tune
from podium.evaluate.significance import randomization
from podium.evaluate.tuning import QualityWeights, search_space
from podium.evaluate.tuning.nested_estimate import NestedEstimate, compute_tuning_row, estimate_nested
from podium.evaluate.tuning.score_table import ScoreTable, TuningTask, evaluate_config, find_finalists
from podium.evaluate.tuning.search_space import MethodSpace, TuningConfig, build_configurations
from podium.methods.base import LIST_FORMS, Tags
from podium.methods.feature.retargeting import MonotoneRetargeting
from podium.methods.positional import Positional
from podium.metrics.base import parse
from podium.storage.folder_cache import ResultCache

EVERY = sorted(registry.aggregators.all())


def problem_of(data, metric="ndcg@5", folds=4, seed=0):
    return TuningTask.from_dataset(data, parse(metric), "item", folds, seed, ResultCache.open(None))


def noise(queries=24, experts=4, items=12, seed=0):
    """Lists and grades by chance."""
    random = np.random.default_rng(seed)
    lists = {
        q: {f"e{e}": random.permutation(items)[:8].tolist() for e in range(experts)} for q in range(queries)
    }
    p = Preferences.from_lists(lists)
    return Dataset(p, Labels(p.index, (random.random(len(p.index.items)) < 0.3).astype(float)))


def one_knows(queries=30, experts=6, seed=0):
    """Expert e0 puts the one relevant item first; the others list by chance."""
    random = np.random.default_rng(seed)
    lists, labels = {}, {}
    for q in range(queries):
        truth = random.permutation(20).tolist()
        lists[q] = {"e0": truth[:10]}
        lists[q] |= {f"e{e}": random.permutation(20)[:10].tolist() for e in range(1, experts)}
        labels[q] = {i: float(i == truth[0]) for i in range(20)}
    return Dataset(Preferences.from_lists(lists), Labels.from_dict(labels))


# -- the space -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_every_declared_interval_and_choice_is_searched(name):
    cls = registry.aggregators.get(name)
    declared = {
        p.name
        for p in params.parameters(cls)
        if (p.tune or isinstance(p.accepts, Choice) or p.kind is bool) and not p.fixed
    }
    assert {a.name for a in search_space.find_axes(cls)} == declared
    for axis in search_space.find_axes(cls):
        values = search_space.grid_values(axis)
        assert values[0] == axis.default
        if axis.tune is None:
            assert set(values) == (set(axis.accepts.values) if axis.accepts else {True, False})
        else:
            assert min(values) <= axis.tune.low + 0.01 * abs(axis.tune.low) + 1e-9
            assert max(values) >= axis.tune.high * 0.99
        assert not any(axis.is_invalid(v) for v in values)


@given(st.sampled_from(EVERY), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_draws_are_accepted_by_the_methods_and_inside_their_intervals(name, seed):
    family = MethodSpace.from_spec(name, False)
    dice = np.random.default_rng(seed)
    values = {axis.name: search_space.sample_value(axis, dice) for axis in family.axes}
    for axis in family.axes:
        if axis.tune:
            low, high = axis.tune.low, axis.tune.high
            assert low - 0.01 * abs(low) <= values[axis.name] <= high + 0.01 * abs(high)
    config = family.build_config(values)
    refused_pairs = {("difference", "log_odds"), ("z_score", "geometric_mean"), ("z_score", "harmonic_mean")}
    chosen = set(itertools.permutations([v for v in values.values() if isinstance(v, str)], 2))
    if chosen & refused_pairs:
        assert not config.is_valid
        return
    made = config.make_method([])
    assert all(getattr(made, k) == v for k, v in values.items())


def test_log_intervals_are_drawn_on_a_log_scale_and_integers_are_whole():
    k = next(a for a in search_space.find_axes(registry.aggregators.get("rrf")) if a.name == "k")
    drawn = [search_space.sample_value(k, np.random.default_rng(s)) for s in range(400)]
    middle = math.sqrt(k.tune.low * k.tune.high)
    assert 0.4 < np.mean(np.array(drawn) < middle) < 0.6
    least = next(
        a for a in search_space.find_axes(registry.aggregators.get("svd")) if a.name == "min_preferences"
    )
    assert all(type(search_space.sample_value(least, np.random.default_rng(s))) is int for s in range(20))


def test_what_is_given_stays_and_defaults_come_first():
    family = MethodSpace.from_spec("combsum(normalizer=zscore)", True)
    assert family.axes == ()
    found = search_space.sample_configs([family, MethodSpace.from_spec("rrf", False)], 12, 9, 0)
    assert found[0].describe([]) == "combsum(normalizer='zscore')"
    assert found[1].describe([]) == "rrf"
    assert {c.method for c in found} == {"combsum", "rrf"}
    assert all(dict(c.parameters)["normalizer"] == "zscore" for c in found if c.method == "combsum")
    assert len(found) == len(set(found)) == 12


def test_draws_of_a_method_do_not_depend_on_the_others():
    both = search_space.sample_configs(
        [MethodSpace.from_spec("rrf", True), MethodSpace.from_spec("rbc", True)], 40, 9, 3
    )
    alone = search_space.sample_configs([MethodSpace.from_spec("rrf", True)], 40, 9, 3)
    assert {c for c in both if c.method == "rrf"} <= set(alone)


def test_a_method_with_beliefs_is_searched_and_kept(tmp_path):
    data = demo(12)
    good = make("labelled_features", beliefs={data.preferences.experts[0]: np.float64(2)})
    found = tune(data, "ndcg@5", [good, "rrf"], trials=6, rounds=100, resume=tmp_path)
    assert repr(good) in {t.config for t in found.trials}
    again = tune(data, "ndcg@5", [good, "rrf"], trials=6, rounds=100, resume=tmp_path)
    assert again.to_dict() == found.to_dict()


def test_methods_are_timed_with_the_features_they_use(monkeypatch):
    from podium.evaluate.tuning.method_selection import _measure_seconds

    data = demo(4)
    index = data.preferences.index
    query = [index.queries[int(q)] for q in index.query_of_slot]
    x = Features.from_rows(query, index.items.tolist(), np.arange(len(index.items))[:, None] * 1.0)
    problem = problem_of(replace(data, features=x))
    seen = []
    aggregate = MonotoneRetargeting.aggregate

    def record(self, preferences, features=None, **options):
        seen.append(features)
        return aggregate(self, preferences, features, **options)

    monkeypatch.setattr(MonotoneRetargeting, "aggregate", record)
    _measure_seconds(problem, make("retargeting"), np.arange(len(problem)))
    assert all(given is not None for given in seen)
    assert seen


def test_values_that_a_method_refuses_together_are_not_drawn():
    found = search_space.sample_configs([MethodSpace.from_spec("svp", False)], 60, 3, 0)
    assert len(found) == 60
    assert all(c.is_valid for c in found)
    assert tune(demo(8), "ndcg@5", ["svp"], trials=15, rounds=100).trials[0].failed == ""


def test_a_grid_is_the_whole_product_or_an_error():
    assert (
        len(search_space.list_grid_configs([MethodSpace.from_spec("svp", False)], 1000)) == 4 * 3 * 5 - 5
    )  # less what svp refuses
    with pytest.raises(ParameterError, match="the grid has up to 60 configurations and trials is 10"):
        search_space.list_grid_configs([MethodSpace.from_spec("svp", False)], 10)


def test_a_toy_method_is_tuned_by_itself():
    @dataclass(kw_only=True, eq=False, repr=False)
    class Top(Positional):
        """One point for being at a place; for tests."""

        name = "top"
        tags = Tags(accepts=LIST_FORMS, additive=True)
        place: Annotated[int, Range(1, 9), Tune(1, 9), "which"] = 5

        def _points(self, rank):
            return (rank == self.place).astype(float)

    try:
        lists = {q: {e: [f"{e}1", f"{e}2", "x"] for e in "ef"} for q in range(12)}
        data = Dataset(Preferences.from_lists(lists), Labels.from_dict({q: {"x": 1} for q in lists}))
        found = tune(data, "mrr", search="grid", weights=False, trials=1000, methods=["top"], baseline="top")
        assert found.best.place == 3
        assert found.tuned == 1.0
        every = tune(data, "mrr", trials=100)
        assert any(t.config.startswith("top") for t in every.trials)
    finally:
        registry.aggregators.discard("top")


# -- values --------------------------------------------------------------------------------------------------------


def test_values_equal_plain_evaluation():
    data = demo(20)
    problem = problem_of(data)
    found = evaluate_config(problem, TuningConfig("rrf", (("k", 7.0),)), np.arange(20))
    plain = evaluate(make("rrf(k=7.0)").aggregate(data.preferences), data.labels, "ndcg@5")
    expected = [plain.values[0][plain.queries.code_of(q)] for q in problem.queries]
    assert found.shape == (4, 20)
    for row in found:
        assert row.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("method", ["rrf", "combmnz", "condorcet", "combmed", "median_rank"])
def test_weights_are_learned_without_the_query_and_the_fold_left_out(method):
    """Against the definition, one query and fold at a time."""
    data = one_knows(12)
    problem, trust = problem_of(data, "ndcg@3", folds=3), QualityWeights(power=2, keep=0.7)
    found = evaluate_config(problem, TuningConfig(method, (), trust), np.arange(12))
    experts = data.preferences.experts.tolist()
    alone = {e: evaluate(expert_rankings(data.preferences, e), data.labels, "ndcg@3") for e in experts}
    queries = problem.queries.tolist()
    for q, query in enumerate(queries):
        for o in range(3):
            free = [r for i, r in enumerate(queries) if problem.fold[i] not in (o, problem.fold[q])]
            means = np.array(
                [np.mean([a.values[0][a.queries.code_of(r)] for r in free]) for a in alone.values()]
            )
            kept = sorted(means, reverse=True)[math.ceil(0.7 * 6) - 1]
            weights = {
                e: float(f"{(m / max(means)) ** 2:.3g}") if m >= kept else 0.0
                for e, m in zip(experts, means, strict=True)
            }
            one = make(method, weights=weights).aggregate(data.preferences.select([query]))
            expected = evaluate(one, data.labels.select([query]), "ndcg@3").values[0][0]
            assert found[o, q] == pytest.approx(expected)


def test_supervised_methods_never_see_what_is_left_out():
    p, labels = lesson(lambda place: float(place < 2), queries=9)
    problem = problem_of(Dataset(p, labels), folds=3)
    config = TuningConfig("weighted_borda", (("passes", 2),))
    found = evaluate_config(problem, config, np.arange(9))
    o, own = 0, 1
    train = [q for q, f in zip(problem.queries, problem.fold, strict=True) if f not in (o, own)]
    test = [q for q, f in zip(problem.queries, problem.fold, strict=True) if f == own]
    model = make("weighted_borda(passes=2)").fit(p.select(train), labels.select(train))
    expected = evaluate(model.aggregate(p.select(test)), labels.select(test), "ndcg@5").values[0]
    assert found[o, problem.fold == own].tolist() == pytest.approx(expected.tolist())


# -- the choice ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["random", "halving"])
def test_the_one_good_expert_is_found(search):
    found = tune(one_knows(), "ndcg@5", ["rrf", "combsum"], search=search, trials=60)
    weights = found.best.weights
    assert max(weights, key=weights.get) == "e0"
    assert sum(w for e, w in weights.items() if e != "e0") < 0.5
    assert found.outcome() == "better"
    assert found.tuned > found.rows[0].mean + 0.2
    assert found.conclusion().startswith("Tuning helps")
    assert found.recommendation() == found.config


def test_grid_finds_the_planted_k():
    """x is third in two lists, y first in one: 2 / (k + 3) is more than 1 / (k + 1) for k above 1 only."""
    lists = {q: {"a": ["y", "p"], "b": ["r", "s", "x"], "c": ["t", "u", "x"]} for q in range(12)}
    data = Dataset(
        Preferences.from_lists(lists), Labels.from_dict({q: {"x": 1.0, "y": 0.0} for q in range(12)})
    )
    found = tune(data, "mrr", ["rrf"], search="grid", weights=False, baseline="rrf(k=0)")
    assert found.best.k > 1
    assert found.tuned == 1.0 > found.rows[0].mean
    assert found.outcome() == "better"


def test_more_workers_other_row_orders_and_names_change_nothing():
    data = demo(25)
    settings = {"metric": "ndcg@5", "methods": ["rrf", "combmnz", "borda"], "trials": 40, "folds": 4}
    one, four = (tune(Dataset(data.preferences, data.labels), workers=w, **settings) for w in (1, 4))
    p = data.preferences
    frame = p.to_frame("pyarrow")
    order = np.random.default_rng(0).permutation(frame.num_rows)
    mixed = frame.take(order)
    columns = [mixed[c].to_pylist() for c in ("query", "expert", "item")]
    every = data.labels.to_frame("pyarrow")
    candidates = (every["query"].to_pylist(), every["item"].to_pylist())
    shuffled = Preferences.from_rows(
        *columns, rank=mixed["rank"].to_pylist(), candidates=candidates, unlisted=p.unlisted
    )
    other = tune(Dataset(shuffled, data.labels), **settings)
    for again in (four, other):
        assert again.to_dict() == one.to_dict()


def test_resuming_gives_the_same_and_computes_nothing_twice(tmp_path, monkeypatch):
    from podium.evaluate.tuning import score_table

    data = noise()
    settings = {"metric": "ndcg@5", "methods": ["rrf", "borda"], "trials": 20, "workers": 1}
    whole = tune(data, **settings).to_dict()
    calls, plain = [], score_table.evaluate_config

    def interrupted(problem, config, columns):
        calls.append(config)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return plain(problem, config, columns)

    monkeypatch.setattr(score_table, "evaluate_config", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune(data, resume=tmp_path / "kept", **settings)
    again = tune(data, resume=tmp_path / "kept", **settings)
    assert again.to_dict() == whole
    assert len(calls) == 8 + len(again.trials) - 7
    assert tune(data, resume=tmp_path / "kept", **settings).to_dict() == whole
    assert len(calls) == 8 + len(again.trials) - 7


def test_the_model_can_be_saved_and_applied(tmp_path):
    data = one_knows()
    found = tune(data, "ndcg@5", ["rrf"], trials=20)
    models.save(found.best, tmp_path / "best.podium")
    loaded = models.load(tmp_path / "best.podium")
    assert loaded.aggregate(data.preferences).to_dict() == found.best.aggregate(data.preferences).to_dict()


# -- the estimate --------------------------------------------------------------------------------------------------


def test_the_nested_estimate_is_the_definition():
    data = noise(20)
    problem = problem_of(data)
    configs = build_configurations(
        "random",
        [MethodSpace.from_spec("rrf", True), MethodSpace.from_spec("rbc", False)],
        15,
        4,
        0,
        TuningConfig("rrf"),
    )
    table = ScoreTable(problem, configs)
    every = [find_finalists(table, "random", o, 0, 1) for o in range(problem.fold_count)]
    found = estimate_nested(table, every, "rrf", 100, 0)
    for o in range(problem.fold_count):
        inside = problem.fold == o
        means = [math.fsum(table.values[c, o, ~inside]) for c in range(len(configs))]
        best = max(range(len(configs)), key=lambda c: round(means[c], 9))
        assert found.chosen[o] == best
        assert found.tuned[inside].tolist() == table.values[best, o, inside].tolist()
        expert = int(np.argmax(problem.expert_values[:, ~inside].mean(axis=1)))
        assert (
            found.others["best expert in training"][inside].tolist()
            == problem.expert_values[expert, inside].tolist()
        )


def test_without_a_choice_the_spread_is_the_usual_bootstrap_and_t_is_scipys():
    random = np.random.default_rng(0)
    data = noise(40)
    table = ScoreTable(problem_of(data), [TuningConfig("rrf"), TuningConfig("isr")])
    rows = [find_finalists(table, "random", o, 0, 1) for o in range(4)]
    table.values[0] = random.uniform(0, 0.2, 40)  # the second is always chosen
    table.values[1] = table.values[0] + random.uniform(0.1, 0.9, 40)
    found = estimate_nested(table, rows, "rrf", 4000, 0)
    d = found.tuned - found.others["rrf"]
    theirs = stats.bootstrap((d,), np.mean, n_resamples=4000, rng=1).standard_error
    assert found.spread["rrf"].std() == pytest.approx(theirs, rel=0.06)
    row = compute_tuning_row(found, "rrf", 0.95, 0)
    low, high = stats.ttest_1samp(d, 0).confidence_interval(0.95)
    assert (row.low, row.high) == (pytest.approx(low, rel=0.05), pytest.approx(high, rel=0.05))
    assert row.p == pytest.approx(max(stats.ttest_1samp(d, 0).pvalue, randomization(d)), abs=1e-4)


def outcome_of(d, spread):
    zero = np.zeros(len(d))
    return compute_tuning_row(
        NestedEstimate(d, {"rrf": zero}, zero, {"rrf": np.array(spread)}), "rrf", 0.95, 0
    )


def test_interval_and_p_by_hand():
    d = np.array([0.1, 0.2, 0.3])
    row = outcome_of(d, [0.15, 0.25])
    error = 0.05 * math.sqrt(3 / 2)
    assert row.difference == pytest.approx(0.2)
    assert row.p == pytest.approx(0.25)  # two of eight sign patterns, which is more than Student's
    assert row.p > 2 * stats.t.sf(0.2 / error, 2)
    assert (row.low, row.high) == (-math.inf, math.inf)  # three queries reject no value at 95 %


def test_the_interval_is_student_s_by_the_bootstrap_where_that_is_the_wider_one():
    d = np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.1, 0.3])
    row = outcome_of(d, [0.1, 0.3])
    error, t = 0.1 * math.sqrt(8 / 7), stats.t.ppf(0.975, 7)
    assert (row.low, row.high) == (pytest.approx(0.2 - t * error), pytest.approx(0.2 + t * error))
    assert row.p == pytest.approx(2 * stats.t.sf(0.2 / error, 7))


@pytest.mark.parametrize("seed", range(20))
def test_interval_and_p_of_tuning_agree(seed):
    random = np.random.default_rng(seed)
    d = random.normal(0.25, 0.4, int(random.integers(6, 14)))
    row = outcome_of(d, random.normal(d.mean(), random.uniform(0.02, 0.2), 50))
    assert (row.low > 0 or row.high < 0) == (row.p <= 0.05)


def test_three_queries_that_agree_exactly_show_nothing():
    lists = {q: {"good": ["x", "y"], "bad": ["y", "x"], "ugly": ["y", "x"]} for q in range(3)}
    data = Dataset(
        Preferences.from_lists(lists), Labels.from_dict({q: {"x": 1.0, "y": 0.0} for q in range(3)})
    )
    found = tune(data, "mrr", ["rrf"], trials=40)
    assert found.tuned == 1.0
    assert found.rows[0].mean == 0.5
    assert found.outcome() == "no difference"


def test_random_labels_are_no_gain():
    verdicts = [
        tune(noise(seed=s), "ndcg@5", ["rrf", "borda", "isr"], trials=12, seed=s, rounds=300).outcome()
        for s in range(30)
    ]
    assert verdicts.count("no difference") >= 28


# -- time ----------------------------------------------------------------------------------------------------------


class Clock:
    """Seconds that pass only when somebody asks."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("search", ["random", "halving"])
def test_a_search_that_runs_out_of_time_is_the_search_with_fewer_trials(search, monkeypatch):
    data, methods = one_knows(), ["rrf", "combsum"]
    monkeypatch.setattr("podium.evaluate.tuning.tuning_run.time.monotonic", Clock())
    seconds = {"random": 30.0, "halving": 90.0}[search]  # a third of it for the first rung
    cut = tune(data, "ndcg@5", methods, search=search, trials=60, workers=1, budget=seconds)
    monkeypatch.undo()
    tried = len(cut.trials)
    assert 5 < tried < 60
    (note,) = (n for n in cut.notes if "budget" in n)
    assert f"after {tried} of 60 configurations" in note
    whole = tune(data, "ndcg@5", methods, search=search, trials=tried, budget=None)
    assert whole.trials == cut.trials
    assert (whole.config, whole.rows, whole.chosen) == (cut.config, cut.rows, cut.chosen)
    assert not any("budget" in n for n in whole.notes)


def test_without_time_the_baseline_is_all_that_was_tried():
    found = tune(one_knows(), "ndcg@5", budget=1e-9)
    assert [t.config for t in found.trials] == ["rrf"]
    assert found.conclusion().startswith("There is nothing to choose: only rrf was tried")
    assert found.recommendation() == "rrf"
    assert "budget" in found.left_out["borda"]
    assert found.to_dict()["budget"] == 1e-9


# -- little and bad input --------------------------------------------------------------------------------------------


def test_one_query_allows_no_estimate():
    data = one_knows(1)
    found = tune(data, "ndcg@5", ["rrf", "borda"], trials=40, search="grid", baseline="rrf")
    assert found.outcome() == "unknown"
    assert found.conclusion().startswith("One judged query allows no estimate")
    assert found.rows[0].p is None
    assert found.recommendation() == "rrf"
    assert any("need three judged queries" in note for note in found.notes)


@pytest.mark.parametrize("queries", [2, 3, 5])
def test_a_handful_of_queries_is_left_out_one_at_a_time(queries):
    found = tune(noise(queries), "ndcg@5", ["rrf", "borda"], trials=10)
    assert found.folds == queries
    assert found.outcome() == "no difference"
    assert "Statistically tied with rrf" in found.conclusion()
    assert any("expect high uncertainty" in note for note in found.notes)


def test_all_methods_equal_is_said():
    lists = {q: {"a": ["x", "y"], "b": ["x", "y"]} for q in range(12)}
    data = Dataset(Preferences.from_lists(lists), Labels.from_dict({q: {"x": 1.0} for q in range(12)}))
    found = tune(data, "mrr", ["rrf", "isr"], trials=10)
    assert found.outcome() == "no difference"
    assert found.conclusion().startswith("There is nothing to choose: all")
    assert repr(found.best) == "rrf"


def test_no_judged_item_in_the_top_is_said():
    lists = {q: {"a": ["x", "y", "z"], "b": ["y", "x", "z"]} for q in range(12)}
    data = Dataset(Preferences.from_lists(lists), Labels.from_dict({q: {"z": 1.0} for q in range(12)}))
    found = tune(data, "ndcg@2", ["rrf", "isr"], trials=10)
    assert found.conclusion().startswith("There is nothing to choose")
    assert "measure at a larger depth" in found.conclusion()


def test_labels_of_other_queries_and_no_labels_are_errors():
    p = noise(12).preferences
    with pytest.raises(InputError, match="no item that was ranked has a label"):
        tune(Dataset(p, Labels.from_dict({"other": {1: 1.0}})))
    with pytest.raises(InputError, match="no labels to tune by"):
        tune(Dataset(p))


def test_unlabeled_and_missing_queries_are_counted():
    data = noise(14)
    some = Labels.from_dict({q: {i: float(i % 2) for i in range(12)} for q in [*range(12), "far"]})
    found = tune(Dataset(data.preferences, some), "ndcg@5", ["rrf"], trials=5)
    assert len(found.queries) == 12
    assert any(n.startswith("1 labeled queries cannot be measured") for n in found.notes)
    assert any(n.startswith("2 queries of the input have no usable labels") for n in found.notes)


def test_queries_for_which_the_metric_is_not_defined_are_left_out():
    data = noise(14)
    grades = {q: {i: float(i % 2 and q > 1) for i in range(12)} for q in range(14)}
    found = tune(Dataset(data.preferences, Labels.from_dict(grades)), "tau", ["rrf", "borda"], trials=8)
    assert found.queries.tolist() == list(range(2, 14))
    flat = Labels.from_dict({q: dict.fromkeys(range(12), 1.0) for q in range(14)})
    with pytest.raises(InputError, match="tau_b is not defined for any judged query"):
        tune(Dataset(data.preferences, flat), "tau", ["rrf"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"search": "luck"}, "search is 'luck'; accepted: random, grid, halving"),
        ({"trials": 0}, "trials is 0"),
        ({"budget": 0.0}, "budget is 0; accepted: seconds above 0"),
        ({"folds": 1}, "folds is 1"),
        ({"level": 1.5}, "level is 1.5"),
        ({"workers": 0}, "workers is 0"),
        ({"methods": ["nosuch"]}, "no method is called 'nosuch'"),
        ({"methods": ["rrf(k=-1)"]}, "k is -1"),
        ({"metric": "ndgc"}, "no metric is called"),
        ({"baseline": "svd"}, "learns from labels"),
        ({"methods": [make("rrf", weights=[1, 2, 3, 4])]}, "the search sets the weights"),
    ],
)
def test_bad_settings_are_refused_in_words(settings, message):
    with pytest.raises(ParameterError, match=message):
        tune(noise(12), **settings)


def test_methods_that_cannot_take_part_are_named_with_the_reason():
    found = tune(noise(12), "ndcg@5", trials=60, limit=1e-9, weights=False)
    assert found.left_out["svd"].startswith("learns from labels")
    assert found.left_out["net_votes"] == "cannot read ranking preferences"
    votes = Preferences.from_comparisons([0, 0, 1], ["j", "k", "j"], ["a", "b", "a"], ["b", "c", "c"])
    data = Dataset(votes, Labels.from_dict({q: {"a": 2.0, "b": 1.0, "c": 0.0} for q in (0, 1)}))
    with pytest.raises(ParameterError, match=r"no method is left to tune \(rrf: cannot read comparison"):
        tune(data, "ndcg@2", ["rrf"])
    assert tune(data, "ndcg@2", ["copeland", "condorcet"], trials=5).baseline == "copeland"


def test_a_configuration_that_fails_is_told_and_never_chosen():
    huge = {q: {"a": {"x": 1e300, "y": -1e300}, "b": {"x": 1e308, "y": -1e308}} for q in range(12)}
    data = Dataset(Preferences.from_lists(huge), Labels.from_dict({q: {"x": 1.0} for q in range(12)}))
    found = tune(data, "mrr", ["rrf", "combsum"], trials=30)
    assert any(t.failed for t in found.trials)
    assert found.best.name == "rrf"
    assert found.left_out.keys() <= {"combsum"}
