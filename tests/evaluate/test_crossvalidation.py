"""Cross-validation: who sees what, what is reported, and what is kept between runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pytest

from podium import Dataset, Features, Labels, Preferences, make
from podium.core import registry
from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.core.params import Range
from podium.data.dataset import Fold
from podium.data.demo import demo
from podium.evaluate import (
    PrunedMethod,
    compare,
    cross_validate,
    evaluate,
    holdout,
    judged_only,
    random_splits,
    tune,
)
from podium.methods.base import Aggregator, Tags

METRICS = ["ndcg@5", "map"]


@pytest.fixture
def toy():
    @dataclass(kw_only=True, eq=False, repr=False)
    class Follower(Aggregator):
        """Ranks as the expert does that puts the best items first in training; notes what it was shown."""

        name = "follower"
        tags = Tags(supervised=True, weighted=False)
        seen: ClassVar[list] = []
        damping: Annotated[float, Range(0, 100), "k of the votes"] = 60.0

        def fit(self, preferences, labels=None, features=None, *, validation=None, progress=None):
            assert not hasattr(self, "best_")
            self.seen.append((set(preferences.queries), set(validation.preferences.queries)))
            assert features is None
            assert validation.features is None
            quality = {}
            for expert in preferences.experts:
                alone = make("rrf").aggregate(preferences.with_experts([expert]))
                quality[expert] = evaluate(alone, labels, "map").mean()["map"]
            progress(1, 2, "looking")
            self.best_ = max(quality, key=quality.get)
            self.experts_ = list(quality)
            return self

        def prune(self, preferences, labels, *, validation=None, progress=None):
            smaller = Follower()
            dropped = [e for e in self.experts_ if e != self.best_][:1]
            smaller.fit(
                preferences.without_expert(dropped[0]), labels, validation=validation, progress=progress
            )
            smaller.dropped_ = dropped
            return smaller

        def _scores(self, preferences, weights):
            weights = {e: float(e == self.best_) for e in preferences.experts}
            return make("rrf", k=self.damping, weights=weights).aggregate(preferences).scores

    yield Follower
    registry.aggregators.discard("follower")


@pytest.fixture(scope="module")
def data():
    return demo(40)


def parts_where(*right: str) -> Dataset:
    """Three parts; in part p the expert right[p] puts the relevant item first and the other one last."""
    lists, labels, part = {}, {}, []
    for p, expert in enumerate(right):
        for n in range(2):
            other = "y" if expert == "x" else "x"
            lists[f"q{p}{n}"] = {expert: ["a", "b", "c"], other: ["c", "b", "a"]}
            labels[f"q{p}{n}"] = {"a": 1, "b": 0, "c": 0}
            part.append(p)
    return Dataset(Preferences.from_lists(lists), Labels.from_dict(labels), part=np.array(part, np.int32))


ONLY = {e: make("rrf", weights={"x": float(e == "x"), "y": float(e == "y")}) for e in "xy"}


def test_candidates_are_chosen_by_the_validation_part_alone():
    data = parts_where("x", "y", "x")  # fold 0 trains on part 0, validates on 1, tests on 2
    found = cross_validate(data, {"either": [ONLY["x"], ONLY["y"]]}, "mrr")
    chosen = [fold.chosen for fold in found["either"]]
    assert chosen == [repr(ONLY[e]) for e in ("y", "x", "x")]
    assert [round(m["mrr"], 4) for m in found.fold_means("either")] == [round(1 / 3, 4), 1.0, round(1 / 3, 4)]
    assert [sorted(fold.validation.values()) for fold in found["either"]] == [[1 / 3, 1.0]] * 3
    assert found["either"][0].dropped == []


def test_a_method_that_learns_is_made_afresh_and_never_sees_the_test_part(data, toy):
    fitted = make("follower")
    fitted.best_ = "left over from before"
    described = Features(data.preferences.index, np.zeros((len(data.preferences.index.items), 1)), ("f",))
    whole = Dataset(data.preferences, data.labels, described, data.part)
    found = cross_validate(whole, {"f": fitted, "g": "follower(damping=1)"}, METRICS)
    assert len(toy.seen) == 10
    for number, fold in enumerate(data.folds()):
        test = set(fold.test.preferences.queries)
        for train, validation in toy.seen[2 * number : 2 * number + 2]:
            assert train == set(fold.train.preferences.queries)
            assert validation == set(fold.validation.preferences.queries)
            assert not test & (train | validation)
        assert set(found["f"][number].evaluation.queries) == test
    assert fitted.best_ == "left over from before"
    toy.seen.clear()


def crowd() -> Dataset:
    """Six workers, of whom one is right and five guess; a query alone does not tell who is who."""
    random, lists, grades = np.random.default_rng(3), {}, {}
    for q in range(30):
        truth = random.permutation(8).tolist()
        grades[q] = {i: float(place < 2) for place, i in enumerate(truth)}
        lists[q] = {"right": truth} | {f"w{k}": random.permutation(8).tolist() for k in range(5)}
    return Dataset(Preferences.from_lists(lists), Labels.from_dict(grades))


def test_methods_that_pool_queries_without_labels_see_all_of_them(tmp_path):
    data = crowd()
    assert not make("crowdagg").tags.per_query
    for some in (data, data.select_codes(np.arange(15))):  # what is kept of one is not taken for the other
        found = cross_validate(
            some, {"crowdagg": ["crowdagg"], "rrf": "rrf"}, "ndcg@3", resume=tmp_path
        ).pool_folds("crowdagg")
        whole = evaluate(make("crowdagg").aggregate(some.preferences), some.labels, "ndcg@3")
        assert dict(zip(found.queries, found["ndcg@3"], strict=True)) == pytest.approx(
            dict(zip(whole.queries, whole["ndcg@3"], strict=True))
        )
        assert (found.missing, found.unlabelled) == (0, 0)
        tuned = tune(some, "ndcg@3", ["crowdagg"], trials=1, weights=False)
        assert {t.config: t.mean for t in tuned.trials}["crowdagg"] == pytest.approx(found.mean()["ndcg@3"])


def test_queries_from_elsewhere_are_answered_by_themselves():
    data = crowd()
    train, test = data.select_codes(np.arange(20)), data.select_codes(np.arange(20, 30))
    found = cross_validate(train, {"c": "crowdagg"}, "ndcg@3", folds=[Fold(train, train, test)])
    alone = evaluate(make("crowdagg").aggregate(test.preferences), test.labels, "ndcg@3")
    assert found.pool_folds("c").mean() == pytest.approx(alone.mean())


def test_means_and_values_by_query_are_those_of_a_plain_evaluation(data):
    found = cross_validate(data, {"rrf": "rrf", "borda": make("borda")}, METRICS, ties="trec")
    for name in ("rrf", "borda"):
        whole = evaluate(make(name).aggregate(data.preferences, ties="trec"), data.labels, METRICS)
        assert found.mean(name) == whole.mean_over_parts(data.part)
        assert found.mean(name, digits=None) == pytest.approx(
            whole.mean_over_parts(data.part, None), abs=1e-15
        )
        pooled = found.pool_folds(name)
        at = [pooled.queries.code_of(q) for q in whole.queries]
        assert (pooled.values[:, at] == whole.values).all()
    by_part = [found.fold_means("rrf")[f]["map"] for f in range(5)]
    parts = [data.select_parts([(f + 4) % 5]) for f in range(5)]
    alone = [
        evaluate(make("rrf").aggregate(p.preferences, ties="trec"), p.labels, "map").mean()["map"]
        for p in parts
    ]
    assert by_part == alone
    assert found.mean("rrf")["map"] == pytest.approx(sum(round(m, 4) for m in by_part) / 5, abs=1e-15)


def test_paired_tests_are_those_of_compare(data):
    results = {name: make(name).aggregate(data.preferences) for name in ("rrf", "borda", "isr")}
    plain = compare(results, data.labels, METRICS, baseline="borda", test="t")
    found = cross_validate(data, {n: n for n in results}, METRICS, baseline="borda").compare(test="t")
    for row in found.rows:
        other = plain.row(row.name, row.metric)
        assert row.mean == pytest.approx(other.mean)
        assert (row.p_holm, row.wins, row.losses) == (
            pytest.approx(other.p_holm) if other.p_holm is not None else None,
            other.wins,
            other.losses,
        )
    assert found.baseline == "borda"


def test_results_are_kept_and_found_again(data, toy, tmp_path):
    def run(source=data, metrics=METRICS, **more):
        toy.seen.clear()
        found = cross_validate(
            source, {"f": ["follower", "follower(damping=1)"]}, metrics, resume=tmp_path, **more
        )
        return found, len(toy.seen)

    first, fits = run()
    assert fits == 10
    assert len(list(tmp_path.iterdir())) == 5
    again, fits = run()
    assert fits == 0
    assert again["f"][0].evaluation.queries == first["f"][0].evaluation.queries
    assert [fold[1:] for fold in again["f"]] == [fold[1:] for fold in first["f"]]
    assert all(
        (a.evaluation.values == b.evaluation.values).all()
        for a, b in zip(again["f"], first["f"], strict=True)
    )

    one, two, *_ = sorted(tmp_path.iterdir())
    one.write_text(one.read_text()[:-20])
    two.write_text(two.read_text().replace("0.", "1.", 1))
    with pytest.warns(PodiumWarning, match="damaged") as warned:
        mended, fits = run()
    assert (len(warned), fits) == (2, 4)
    assert mended.mean("f") == first.mean("f")
    assert run()[1] == 0

    other = Dataset(
        data.preferences, Labels(data.labels.index, data.labels.grades[::-1].copy()), part=data.part
    )
    assert [run(other)[1], run(metrics="mrr")[1], run(ties="input")[1]] == [10, 10, 10]


def test_defaults_belong_to_what_identifies_a_kept_result():
    """A default that changes, in a newer version or in a method being written, must not reuse old results."""
    name, values = make("rrf").key_facts()
    assert (name, float(values["k"])) == ("rrf", 60.0)
    assert PrunedMethod("rrf").key_facts() == ["pruned", name, values]
    assert make("rrf(k=60)").key_facts() == [name, values] != make("rrf(k=61)").key_facts()


def test_undefined_values_survive_being_kept(tmp_path):
    data = parts_where("x", "x", "x")
    grades = data.labels.grades.copy()
    grades[:6] = 1.0  # one grade: tau is not defined
    data = Dataset(data.preferences, Labels(data.labels.index, grades), part=data.part)
    first, again = (cross_validate(data, {"rrf": "rrf"}, "tau_b", resume=tmp_path) for _ in range(2))
    assert np.isnan(first.pool_folds("rrf").values).sum() == 2
    np.testing.assert_array_equal(first.pool_folds("rrf").values, again.pool_folds("rrf").values)


def test_pruning_leaves_out_what_the_model_does_not_use(data, toy):
    found = cross_validate(data, {"pruned": PrunedMethod("follower")}, "map")
    assert [fold.chosen for fold in found["pruned"]] == ["pruned follower"] * 5
    assert [len(fold.dropped) for fold in found["pruned"]] == [1] * 5
    assert len(toy.seen) == 10
    with pytest.raises(ParameterError, match="rrf does not report unused experts"):
        cross_validate(data, {"p": PrunedMethod("rrf")}, "map")
    toy.seen.clear()


def test_random_splits_depend_on_the_seed_and_the_ids_alone(data):
    def ids(folds):
        return [[sorted(part.preferences.queries) for part in fold] for fold in folds]

    turned = data.select_codes(np.arange(len(data))[::-1])
    assert ids(random_splits(data)) == ids(random_splits(turned))
    assert ids(random_splits(data)) != ids(random_splits(data, seed=1))
    for fold in random_splits(data, times=3):
        assert [len(part) for part in fold] == [24, 8, 8]
        assert sorted(q for part in fold for q in part.preferences.queries) == sorted(
            data.preferences.queries
        )
    for times, shares in (
        (0, (0.6, 0.2, 0.2)),
        (5, (0.6, 0.4)),
        (5, (0.9, 0.2, -0.1)),
        (5, (0.98, 0.01, 0.01)),
    ):
        with pytest.raises(ParameterError):
            random_splits(data, times, shares)


def test_a_query_tested_twice_counts_once(data):
    splits = random_splits(data, times=4)
    found = cross_validate(data, {"rrf": "rrf", "borda": "borda"}, METRICS, folds=splits)
    tested = [q for fold in splits for q in fold.test.preferences.queries]
    assert len(set(tested)) < len(tested)
    assert len(found.pool_folds("rrf")) == len(set(tested)) == found.compare().queries
    frame = found.to_frame("pandas")
    assert len(frame) == 2 * len(tested)
    assert set(zip(frame["fold"], frame["query"], strict=True)) == {
        (number, q) for number, fold in enumerate(splits) for q in fold.test.preferences.queries
    }


def test_holdout_takes_labeled_queries(data):
    few = Dataset(data.preferences, data.labels.select(data.labels.queries[:10]))
    rest, held = holdout(few, 0.3)
    assert (len(rest), len(held)) == (37, 3)
    assert set(held.preferences.queries) <= set(data.labels.queries[:10])
    assert held.labels is not None
    assert len(held.labels) == 3
    for share in (0, 1, -1):
        with pytest.raises(ParameterError, match="share is"):
            holdout(few, share)
    with pytest.raises(ParameterError, match="0 labeled queries"):
        holdout(Dataset(data.preferences), 0.5)


def test_only_labeled_items_are_measured():
    lists = {q: {"e": ["x", "a", "y", "b"]} for q in range(6)}
    labels = Labels.from_dict({q: {"a": 1, "b": 0} for q in range(6)})
    data = Dataset(Preferences.from_lists(lists), labels, part=np.arange(6, dtype=np.int32) % 3)
    assert cross_validate(data, {"rrf": "rrf"}, "mrr").mean("rrf") == {"mrr": 0.5}
    assert cross_validate(data, {"rrf": "rrf"}, "mrr", labelled_only=True).mean("rrf") == {"mrr": 1.0}
    tied = make("rrf").aggregate(Preferences.from_lists({"q": {1: ["b", "z"], 2: ["a", "z"]}}), ties="input")
    assert judged_only(tied, Labels.from_dict({"q": {"a": 0, "b": 1}})).ranking("q") == ["b", "a"]


def test_progress_goes_up_to_the_end(data, toy):
    told = []
    cross_validate(data, {"f": "follower", "rrf": "rrf"}, "map", progress=lambda *words: told.append(words))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][0] == told[-1][1]
    assert "f, fold 1 of 5" in {what for _, _, what in told}
    toy.seen.clear()


@pytest.mark.parametrize(
    ("aggregators", "more", "message"),
    [
        ({}, {}, "nothing to validate"),
        ({"rrf": []}, {}, "no candidate"),
        ({"rrf": "rff"}, {}, "did you mean"),
        ({"rrf": "rrf"}, {"baseline": "borda"}, "no method 'borda'"),
        ({"rrf": "rrf"}, {"folds": []}, "nothing to validate"),
        ({"rrf": "rrf"}, {"choose_by": "mapp"}, "mapp"),
    ],
)
def test_what_cannot_be_validated(data, aggregators, more, message):
    with pytest.raises(ParameterError, match=message):
        cross_validate(data, aggregators, "map", **more)


def test_data_without_labels(data, tmp_path):
    with pytest.raises(InputError, match="no labels to measure"):
        cross_validate(Dataset(data.preferences, part=data.part), {"rrf": "rrf"}, "map")
    folds = [fold._replace(validation=Dataset(fold.validation.preferences)) for fold in data.folds()]
    with pytest.raises(InputError, match="no labels to measure"):
        cross_validate(data, {"rrf": ["rrf", "borda"]}, "map", folds=folds)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot use this as a folder"):
        cross_validate(data, {"rrf": "rrf"}, "map", resume=tmp_path / "file")
    with pytest.raises(ParameterError, match="no result 'borda'"):
        cross_validate(data, {"rrf": "rrf"}, "map").mean("borda")


@pytest.mark.parametrize(
    ("data", "methods", "said"),
    [(demo(6), ["rrf", "borda"], "cross_validate was given a list; give methods by name"),
     (demo(6), "rrf", "cross_validate was given a str; give methods by name"),
     (demo(6).preferences, {"rrf": "rrf"}, r"cross_validate was given a Preferences; give podium.Dataset"),
     (None, {"rrf": "rrf"}, "cross_validate was given a NoneType")],
)  # fmt: skip
def test_arguments_of_another_kind_are_refused_in_words(data, methods, said):
    with pytest.raises(InputError, match=said):
        cross_validate(data, methods, "map")


def test_too_few_queries_for_the_usual_folds():
    """The user said nothing of a number of folds: the message does, and what it proposes works."""
    data = demo(4)
    with pytest.raises(
        ParameterError, match=r"4 queries are too few for 5 folds; .* folds=dataset.folds\(4\)"
    ):
        cross_validate(data, {"rrf": "rrf"}, "map")
    assert len(cross_validate(data, {"rrf": "rrf"}, "map", folds=data.folds(4)).pool_folds("rrf")) == 4
    with pytest.raises(ParameterError, match="2 queries are too few for 5 folds; folds need 3 or more"):
        demo(2).folds()
    with pytest.raises(ParameterError, match="k is 9; accepted: 3 to the number of queries"):
        data.folds(9)
