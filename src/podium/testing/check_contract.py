"""Contract checks: guarantees that hold for every method."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import random
import re
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from podium import models
from podium.core import params, registry
from podium.core.errors import InputError, ParameterError, PodiumError, UnsupportedFormError
from podium.data.labels import Labels
from podium.data.preferences import Form, Preferences
from podium.methods.base import Aggregator, make
from podium.methods.learned.provenance import find_fitted_queries
from podium.testing.checks import (
    build_agreeing_labels,
    build_agreeing_preferences,
    build_sample_preferences,
    catch_message,
    check,
    fit_aggregator,
    fit_and_aggregate,
    reads_lists,
    set_environment,
    use_threads,
)
from podium.testing.samples import sample_rows


@check()
def name_is_a_bijection(cls: type[Aggregator]) -> None:
    """The name is registered for this class and no other."""
    assert registry.aggregators.get(cls.name) is cls
    assert [n for n, c in registry.aggregators.all().items() if c is cls] == [cls.name]


@check()
def folder_matches_tags(cls: type[Aggregator]) -> None:
    """The folder of a built-in method matches its tags: learns from labels, or uses item features."""
    if cls.__module__.startswith("podium.methods."):
        folders = cls.__module__.split(".")[2:-1]
        assert ("learned" in folders) == cls.tags.supervised
        assert ("feature" in folders) == (cls.tags.uses_features and not cls.tags.supervised)


@check()
def has_documentation(cls: type[Aggregator]) -> None:
    """The docstring has a one-sentence summary, an example and, for published methods, a citation."""
    text = inspect.getdoc(cls) or ""
    assert text.split("\n")[0].endswith("."), "the first line of the docstring is a sentence"
    assert ">>>" in text, "the docstring has an example"
    assert all(p.help for p in params.parameters(cls)), "every parameter has a help text"


@check()
def repr_round_trip(cls: type[Aggregator]) -> None:
    """The printed form creates an equal aggregator."""
    variants = [cls()]
    for p in params.parameters(cls):
        if isinstance(p.accepts, params.Choice):
            variants += [cls(**{p.name: v}) for v in p.accepts.values]
        elif p.tune is not None:
            variants.append(cls(**{p.name: p.kind(p.tune.high)}))
    for one in variants:
        assert make(repr(one)).get_parameters() == one.get_parameters()


@check()
def save_load_round_trip(cls: type[Aggregator]) -> None:
    """A saved aggregator gives the same bytes after loading."""
    for preferences in build_sample_preferences(cls, 1):
        one = fit_aggregator(cls(), preferences)
        with tempfile.TemporaryDirectory() as folder:
            models.save(one, f"{folder}/model.podium")
            again = models.load(f"{folder}/model.podium")
        assert again.get_parameters() == one.get_parameters()
        assert again.aggregate(preferences).scores.tobytes() == one.aggregate(preferences).scores.tobytes()


@check()
def bad_parameters_are_refused(cls: type[Aggregator]) -> None:
    """A value outside its declared range, and an unknown name, raise ParameterError."""
    for p in params.parameters(cls):
        bad: Any = p.accepts.high * 2 + 1 if isinstance(p.accepts, params.Range) else object()
        catch_message(ParameterError, functools.partial(cls, **{p.name: bad}))
    catch_message(ParameterError, lambda: make(cls.name, no_such_parameter=1))


@check()
def input_untouched(cls: type[Aggregator]) -> None:
    """Aggregating does not change its input."""
    for preferences in build_sample_preferences(cls, 1):
        before = [c.copy() for c in _collect_arrays(preferences)]
        fit_and_aggregate(cls(), preferences)
        assert all(
            np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
            for a, b in zip(before, _collect_arrays(preferences), strict=True)
        )


@check()
def same_call_same_bytes(cls: type[Aggregator]) -> None:
    """Two calls give the same bytes, and do not touch global random state, environment or threads."""
    for preferences in build_sample_preferences(cls, 1):
        state = _global_state()
        a, b = fit_and_aggregate(cls(), preferences), fit_and_aggregate(cls(), preferences)
        assert a.scores.tobytes() == b.scores.tobytes()
        assert a.order.tobytes() == b.order.tobytes()
        assert state == _global_state()


def _global_state() -> tuple[object, ...]:
    legacy: Any = np.random.get_state()  # noqa: NPY002 - to check that it is unchanged
    return legacy[1].tobytes(), random.getstate(), dict(os.environ)


@check()
def threads_do_not_matter(cls: type[Aggregator]) -> None:
    """Queries divided among several threads have the same bytes as in one thread."""
    for preferences in build_sample_preferences(cls, 1):
        alone = fit_and_aggregate(cls(), preferences)
        with use_threads(3):
            divided = fit_and_aggregate(cls(), preferences)
        assert alone.scores.tobytes() == divided.scores.tobytes()
        assert alone.order.tobytes() == divided.order.tobytes()


@check()
def earlier_calls_do_not_matter(cls: type[Aggregator]) -> None:
    """A call gives the same bytes before and after calls with other preferences."""
    samples = list(build_sample_preferences(cls, 1))
    first = [fit_and_aggregate(cls(), preferences) for preferences in samples]
    for preferences, before in reversed(list(zip(samples, first, strict=True))):
        after = fit_and_aggregate(cls(), preferences)
        assert before.scores.tobytes() == after.scores.tobytes()
        assert before.order.tobytes() == after.order.tobytes()


@check()
def covers_exactly_the_items(cls: type[Aggregator]) -> None:
    """The result has each item of each query exactly once, listed or not, and nothing else."""
    for preferences in build_sample_preferences(cls):
        consensus = fit_and_aggregate(cls(), preferences)
        for query in preferences.queries:
            items = preferences.index.items[preferences.index.slots(query)]
            assert sorted(map(str, consensus.ranking(query))) == sorted(map(str, items))


@check()
def score_order_is_rank_order(cls: type[Aggregator]) -> None:
    """Scores are finite and decrease down the ranking; exactly the equal scores are marked as tied."""
    for preferences in build_sample_preferences(cls):
        consensus = fit_and_aggregate(cls(), preferences)
        for query in consensus.queries:
            scores = [r.score for r in consensus[query]]
            assert np.isfinite(scores).all()
            assert scores == sorted(scores, reverse=True)
            assert [r.tied for r in consensus[query]] == [scores.count(s) > 1 for s in scores]
            assert [r.rank for r in consensus[query]] == list(range(1, len(scores) + 1))


@check(reads_lists)
def one_item(cls: type[Aggregator]) -> None:
    """A query with one item ranks it first."""
    preferences = Preferences.from_lists(
        {"q": {"a": ["x"], "b": ["x"]}, "r": {"a": ["x", "y"], "b": ["y", "x"]}}
    )
    assert fit_and_aggregate(cls(), preferences).ranking("q") == ["x"]


@check(reads_lists)
def one_expert(cls: type[Aggregator]) -> None:
    """With one expert the consensus is its list."""
    preferences = Preferences.from_lists({"q": {"a": ["z", "x", "y", "w"]}})
    assert fit_and_aggregate(cls(), preferences).ranking("q") == ["z", "x", "y", "w"]


@check(lambda tags: Form.RATING in tags.accepts)
def all_tied(cls: type[Aggregator]) -> None:
    """Items that no expert distinguishes are tied, in id order."""
    preferences = Preferences.from_lists(
        {"q": {"a": dict.fromkeys("dbca", 1.0), "b": dict.fromkeys("bcda", 2.0)}}
    )
    consensus = fit_and_aggregate(cls(), preferences)
    assert consensus.ranking("q") == list("abcd")
    assert all(r.tied for r in consensus["q"])


@check(reads_lists)
def nobody_lists_anything(cls: type[Aggregator]) -> None:
    """A query with only unlisted candidates still has a result: all tied."""
    preferences = Preferences.from_rows(
        ["q", "q"], ["a", "b"], ["x", "x"], rank=[1, 1], candidates=(["q", "r", "r"], ["y", "u", "v"])
    )
    consensus = fit_and_aggregate(cls(), preferences)
    assert consensus.ranking("q") == ["x", "y"]
    assert consensus.ranking("r") == ["u", "v"]
    assert all(r.tied for r in consensus["r"])


@check()
def no_queries(cls: type[Aggregator]) -> None:
    """Empty preferences give an empty consensus."""
    method = cls()
    if cls.tags.supervised:
        method = fit_aggregator(method, build_sample_preferences(cls, 1)[0])
    assert len(method.aggregate(Preferences.from_rows([], [], [], rank=[]))) == 0


@check(lambda tags: tags.supervised)
def fit_is_required(cls: type[Aggregator]) -> None:
    """No result before `fit`; missing labels, a single grade and labels of other items raise clear errors."""
    preferences = build_sample_preferences(cls, 1)[0]
    same = Labels(preferences.index, np.ones(len(preferences.index.items)))
    strange = Labels.from_dict({"q1": {"nobody": 1, "no one": 0}})
    messages: list[tuple[str, Callable[[], Any]]] = [
        ("has not been fitted", lambda: cls().aggregate(preferences)),
        ("no labels", lambda: cls().fit(preferences)),
        ("the same grade", lambda: cls().fit(preferences, same)),
        ("no label matches an item", lambda: cls().fit(preferences, strange)),
    ]
    for words, call in messages:
        message = catch_message(PodiumError, call)
        assert words in message, f"expected an error with {words!r}, got {message}"


@check(lambda tags: tags.supervised)
def training_queries_are_known_again(cls: type[Aggregator]) -> None:
    """A saved and loaded model recognizes exactly the labeled queries that it was fitted on."""
    preferences = build_sample_preferences(cls, 1)[0]
    model = fit_aggregator(cls(), preferences)
    again = models.model_files.loads(models.model_files.dumps(model))
    # those that `fit_aggregator` used
    known = [
        find_fitted_queries(again, build_agreeing_labels(p))
        for p in (preferences, build_agreeing_preferences(preferences))
    ]
    assert any(seen is not None and seen.all() for seen in known), "the training queries are not recognized"
    other = Labels.from_dict({q: {"another item": 1.0, "one more": 0.0} for q in preferences.queries})
    seen = find_fitted_queries(again, other)
    assert seen is not None
    assert not seen.any(), "other queries with the same ids are taken for training queries"


@check(lambda tags: tags.supervised)
def unknown_experts_are_refused_unless_allowed(cls: type[Aggregator]) -> None:
    """An unknown expert is an error that names it, or is ignored with `unseen="ignore"`."""
    preferences = build_sample_preferences(cls, 1)[0]
    fewer = preferences.without_expert("e1")
    message = "'e1'"  # a method with shared weights may accept unknown experts
    try:
        fit_aggregator(cls(), fewer).aggregate(preferences)
    except ParameterError as error:
        message = str(error)
    assert "'e1'" in message, message
    ignoring = fit_aggregator(cls(unseen="ignore"), fewer)  # type: ignore[call-arg]
    assert len(ignoring.aggregate(preferences)) == len(preferences)


@check()
def other_forms_are_refused(cls: type[Aggregator]) -> None:
    """Preferences of an unsupported form raise UnsupportedFormError."""
    for form in set(Form) - cls.tags.accepts:
        other = sample_rows(form, 0).to_preferences()
        assert form.value in catch_message(UnsupportedFormError, functools.partial(cls().aggregate, other))


@check()
def default_stop_is_near_the_limit(cls: type[Aggregator]) -> None:
    """The default `tolerance`, if any, gives the result of the smallest accepted one to six digits."""
    tight = next((p for p in params.parameters(cls) if p.name == "tolerance"), None)
    if tight is None or not isinstance(tight.accepts, params.Range):
        return
    for preferences in build_sample_preferences(cls, 2):
        tightest = cls(tolerance=tight.accepts.low)  # type: ignore[call-arg]
        a, b = fit_and_aggregate(cls(), preferences), fit_and_aggregate(tightest, preferences)
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-6, atol=1e-9)


@check()
def says_when_it_did_not_converge(cls: type[Aggregator]) -> None:
    """With `max_iterations=1`, if there is such a parameter, the result is marked as not converged."""
    if not {"tolerance", "max_iterations"} <= {p.name for p in params.parameters(cls)}:
        return
    for preferences in build_sample_preferences(cls, 1):
        hurried = cls(max_iterations=1)  # type: ignore[call-arg]
        diagnostics = fit_aggregator(hurried, preferences).aggregate(preferences).diagnostics
        assert not diagnostics.converged
        assert diagnostics.notes


def _collect_arrays(preferences: Preferences) -> list[Any]:
    tables = (preferences.index, preferences.lists, preferences.comparisons)
    return [
        v for t in tables for f in dataclasses.fields(t) if isinstance(v := getattr(t, f.name), np.ndarray)
    ]


REFUSAL = r"^{name} needs about .+ for [\d,]+ .+, and the limit is .+; .+"


@check()
def refuses_what_costs_too_much(cls: type[Aggregator]) -> None:
    """A method that compares items pairwise estimates its cost and rejects inputs beyond the limits."""
    compares = False
    for preferences in build_sample_preferences(cls, 1):
        one = fit_aggregator(cls(), preferences) if cls.tags.supervised else cls()
        usual = one.aggregate(preferences).scores.tobytes()
        needs = any(max(c.memory, c.operations) > 0 for c in one._estimate_costs(preferences))
        compares |= needs
        with set_environment(PODIUM_MEMORY="0", PODIUM_OPERATIONS="0"):
            if needs:
                _assert_refused(one, preferences)
            else:
                assert one.aggregate(preferences).scores.tobytes() == usual
    if cls.tags.pairwise == "none":
        assert not compares, "a method with costs has the tag pairwise"
    if cls.tags.pairwise == "items":
        assert compares, "the tag pairwise='items' needs an estimate from _costs"


def _assert_refused(one: Aggregator, preferences: Any) -> None:
    def fail_if_computed(*_: Any) -> Any:
        raise AssertionError("the method computed before it checked the limits")

    vars(one)["_compute_raw_outcome"] = fail_if_computed
    try:
        one.aggregate(preferences)
        raise AssertionError("with limits of zero the input was not rejected")
    except InputError as error:
        refusal = error
    finally:
        del vars(one)["_compute_raw_outcome"]
    assert re.match(REFUSAL.format(name=one.name), str(refusal)), str(refusal)
    known = {*registry.aggregators.all(), *one.get_parameters()} - {one.name}
    named = known & set(re.findall(r"\w+", str(refusal.remedy)))
    assert named, f"the error names no alternative method or option: {refusal}"
