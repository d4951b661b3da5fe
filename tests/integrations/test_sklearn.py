"""The scikit-learn estimator: scikit-learn's own checks of parameters, and searches over folds of queries."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.utils import estimator_checks

import podium
from podium.core.errors import InputError, ParameterError
from podium.data.demo import demo
from podium.integrations.sklearn import RankAggregator

pytestmark = pytest.mark.filterwarnings("ignore::podium.core.errors.PodiumWarning")
CHECKS = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_get_params_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
]  # those that pass no matrix of numbers


@pytest.fixture(scope="module")
def data():
    return demo(60)


@pytest.fixture(scope="module", params=["pandas", "polars"])
def table(request, data):
    pytest.importorskip("pyarrow", reason="the sample is converted with pyarrow")
    return data.preferences.to_frame(request.param)


@pytest.fixture(scope="module")
def grades(data, table):
    known = {(row["query"], row["item"]): row["grade"] for row in data.labels.to_frame().to_pylist()}
    pairs = zip(table["query"].to_list(), table["item"].to_list(), strict=True)
    return np.array([known.get(pair, np.nan) for pair in pairs])


@pytest.mark.parametrize("name", CHECKS)
def test_the_checks_of_scikit_learn_pass(name):
    getattr(estimator_checks, name)("RankAggregator", RankAggregator())


def test_parameters_of_the_method_are_parameters():
    estimator = RankAggregator("rrf(k=20)")
    assert estimator.get_params()["method__k"] == 20
    assert clone(estimator.set_params(method__k=5)).get_params()["method__k"] == 5
    assert repr(estimator.set_params(method="rbc", method__persistence=0.5).method) == "rbc(persistence=0.5)"
    with pytest.raises(ParameterError, match="rbc has no parameter 'k'"):
        estimator.set_params(method__k=3)


@pytest.mark.parametrize(
    ("method", "grid"),
    [("rrf", {"method__k": [1, 10, 60]}), ("rrf", {"method": ["rrf", "rbc", "condorcet"]})],
    ids=["parameter", "method"],
)
def test_a_grid_search_over_queries_gives_the_figures_of_podium(data, table, grades, method, grid):
    groups = table["query"].to_list()
    estimator = RankAggregator(method, unlisted="below")
    search = GridSearchCV(estimator, grid, cv=GroupKFold(4), error_score="raise")
    search.fit(table, grades, groups=groups)
    for number, (_, test) in enumerate(GroupKFold(4).split(table, grades, groups)):
        queries = list(dict.fromkeys(groups[row] for row in test))
        rows = data.preferences.select(queries).to_frame()  # without candidates that no expert lists
        part = podium.Preferences.from_frame(rows, unlisted="below", rank="rank")
        for candidate, params in enumerate(search.cv_results_["params"]):
            made = podium.make(RankAggregator(method).set_params(**params).method)
            (mean,) = podium.evaluate.evaluate(made.aggregate(part), data.labels, "ndcg@10").mean().values()
            assert search.cv_results_[f"split{number}_test_score"][candidate] == pytest.approx(mean)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])


def test_a_learned_method_is_trained_on_the_training_queries(data, table, grades):
    folds = {"groups": table["query"].to_list(), "cv": GroupKFold(3), "error_score": "raise"}
    scores, plain = (
        cross_val_score(RankAggregator(method), table, grades, **folds) for method in ("weighted_rrf", "rrf")
    )
    assert scores.mean() > plain.mean()


def test_predictions_are_the_scores_of_the_rows(data, table):
    estimator = RankAggregator("rrf(k=10)").fit(table)
    expected = podium.make("rrf(k=10)").aggregate(data.preferences).to_dict()
    pairs = zip(table["query"].to_list(), table["item"].to_list(), strict=True)
    assert estimator.predict(table).tolist() == [expected[query][item] for query, item in pairs]
    assert pickle.loads(pickle.dumps(estimator)).predict(table).tolist() == estimator.predict(table).tolist()


def test_columns_have_other_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"topic": [1, 1], "system": ["s", "s"], "doc": ["a", "b"], "sim": [0.1, 0.9]})
    names = {"query_column": "topic", "expert_column": "system", "item_column": "doc", "score_column": "sim"}
    estimator = RankAggregator(**names).fit(frame)
    assert estimator.predict(frame).tolist() == pytest.approx([1 / 62, 1 / 61])
    assert estimator.score(frame, [0, 1]) == 1.0


def test_mistakes_are_named():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"query": [1, 1], "expert": ["e", "f"], "item": ["a", "a"], "rank": [1, 1]})
    with pytest.raises(InputError, match="row 2: item 'a' of query 1 has the grades 0 and 1"):
        RankAggregator().fit(frame, [0, 1])
    with pytest.raises(InputError, match=r"X has no column 'item'; did you mean items\?"):
        RankAggregator().fit(frame.rename(columns={"item": "items"}))
    with pytest.raises(InputError, match="X is a ndarray; give a dataframe"):
        RankAggregator().fit(frame.to_numpy())
    with pytest.raises(NotFittedError):
        RankAggregator().predict(frame)
