"""Queries that a model was fitted on are known again, in memory and from its file, and do not measure it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from podium import Dataset, Labels, Preferences, make, models
from podium.core.errors import NoGainWarning
from podium.data.demo import demo
from podium.evaluate.heldout_labels import LEAST, exclude_fitted_queries
from podium.evaluate.tuning import tune
from podium.methods.learned.provenance import find_fitted_queries


@pytest.fixture(scope="module")
def data():
    return demo(40)


def part(data, queries):
    names = data.preferences.queries.tolist()[queries]
    return Dataset(data.preferences.select(names), data.labels.select(names))


@pytest.fixture(scope="module")
def fitted(data):
    train, check = part(data, slice(0, 15)), part(data, slice(15, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoGainWarning)
        return make("crf").fit(train.preferences, train.labels, validation=check)


def test_training_and_validation_queries_are_known_again(data, fitted, tmp_path):
    models.save(fitted, tmp_path / "m.podium")
    for model in (fitted, models.load(tmp_path / "m.podium")):
        seen = find_fitted_queries(model, data.labels)
        known = data.preferences.queries.tolist()[:20]
        assert {q for q, s in zip(data.labels.queries, seen, strict=True) if s} == set(known)


def test_queries_are_known_by_their_items_too(data, fitted):
    """Another data set that calls its queries the same is another data set; labels that were added are not."""
    query = data.preferences.queries[0]
    other = Labels.from_dict({query: {"elsewhere 1": 1.0, "elsewhere 2": 0.0}})
    assert not find_fitted_queries(fitted, other).any()
    index = data.labels.index
    own = dict.fromkeys(index.items[index.slots(query)], 1.0)
    more = Labels.from_dict({query: own | {f"new {n}": 0.0 for n in range(50)}})
    assert find_fitted_queries(fitted, more).all()


def test_an_older_model_file_loads_and_does_not_say(data, fitted):
    """A file without the digests: as those of earlier versions, which hold everything else."""
    old = make("crf")
    for name, value in vars(fitted).items():
        if name not in ("fitted_on_", "validation_"):
            setattr(old, name, value)
    again = models.model_files.loads(models.model_files.dumps(old))
    assert find_fitted_queries(again, data.labels) is None
    found = exclude_fitted_queries({"crf": again}, data.labels)
    assert (found.unrecorded, len(found.labels)) == (("crf",), len(data.labels))
    assert "does not record which ones" in found.notes[0]


def test_fitting_again_forgets_what_was_noted(data, fitted):
    again = models.model_files.loads(models.model_files.dumps(fitted))
    last = part(data, slice(30, 40))
    again.fit(last.preferences, last.labels)
    assert find_fitted_queries(again, data.labels).sum() == 10
    assert not hasattr(again, "validation_")


def test_figures_are_of_other_queries(data, fitted):
    found = exclude_fitted_queries({"crf": fitted, "rrf": make("rrf")}, data.labels)
    assert set(found.labels.queries) == set(data.preferences.queries.tolist()[20:])
    assert (dict(found.used), found.left_out) == ({"crf": 20}, {})
    assert "all figures use the 20 others" in found.notes[0]
    untouched = part(data, slice(20, 40)).labels
    assert exclude_fitted_queries({"crf": fitted}, untouched).unaffected == ("crf",)


@pytest.mark.parametrize("left", [0, LEAST - 1])
def test_a_model_without_enough_other_queries_has_no_figures(data, left):
    some = part(data, slice(0, 40 - left))
    model = make("weighted_borda").fit(some.preferences, some.labels)
    found = exclude_fitted_queries({"m": model, "rrf": make("rrf")}, data.labels)
    assert len(found.labels) == len(data.labels)
    assert "labeled queries" in found.left_out["m"]


def test_what_labels_chose_they_cannot_measure(data):
    """Also for a method that learns nothing, once its parameters were tuned."""
    best = tune(data, "ndcg@5", ["rrf"], trials=3, weights=False).best
    again = models.model_files.loads(models.model_files.dumps(best))
    assert not again.tags.supervised
    assert find_fitted_queries(again, data.labels).all()
    assert list(exclude_fitted_queries({"tuned": again}, data.labels).left_out) == ["tuned"]
    assert not find_fitted_queries(make("rrf"), data.labels).any()


def test_integers_are_not_strings():
    lists = {q: {"x": ["a", "b", "c"], "y": ["b", "a", "c"]} for q in range(3)}
    labels = Labels.from_dict({q: {"a": 1.0, "b": 0.0} for q in range(3)})
    model = make("weighted_borda").fit(Preferences.from_lists(lists), labels)
    assert find_fitted_queries(model, labels).all()
    assert not find_fitted_queries(model, Labels.from_dict({str(q): {"a": 1.0} for q in range(3)})).any()


def test_a_model_worse_than_a_plain_method_is_warned_of():
    """Training says to believe the bad expert; on the validation queries rrf of both is better."""
    items = [f"d{n}" for n in range(12)]
    rng = np.random.default_rng(0)
    lists, grades = {}, {}
    for q in range(30):
        good, bad = list(rng.permutation(items)), list(rng.permutation(items))
        believed = bad if q < 20 else good
        lists[f"q{q}"] = {"good": good, "bad": bad, "also good": good}
        grades[f"q{q}"] = {i: float(believed.index(i) < 3) for i in items}
    p, labels = Preferences.from_lists(lists), Labels.from_dict(grades)
    train, check = ([f"q{q}" for q in span] for span in (range(20), range(20, 30)))
    held = Dataset(p.select(check), labels.select(check))
    model = make("weighted_borda")
    with pytest.warns(NoGainWarning, match="worse than rrf on the 10 validation queries.* use rrf instead"):
        model.fit(p.select(train), labels.select(train), validation=held)
    told = model.validation_
    assert told["after"] < told["before"]
    assert told["baseline"] == "rrf"
    from podium.evaluate import evaluate

    for name, method in (("before", make("rrf")), ("after", model)):
        [mean] = evaluate(method.aggregate(held.preferences), held.labels, told["metric"]).mean().values()
        assert told[name] == pytest.approx(mean)
    kept = models.model_files.loads(models.model_files.dumps(model)).validation_
    assert kept == told
