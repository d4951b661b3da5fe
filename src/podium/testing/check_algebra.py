"""Algebraic checks: changes of the input that must not change, or must change, the result."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from podium.core.errors import ParameterError
from podium.data.consensus import Consensus
from podium.data.ids import Id
from podium.data.preferences import Form, Preferences
from podium.methods.base import Aggregator, Tags
from podium.testing.checks import (
    assert_close,
    build_sample_preferences,
    build_samples,
    catch_message,
    check,
    fit_aggregator,
    fit_and_aggregate,
    reads_lists,
    tie_groups,
)
from podium.testing.samples import EXPERTS, ITEMS, PreferenceRows, reorder_rows, sample_rows


def _rename_ids(
    answers: PreferenceRows, item: Mapping[Id, Id] | None = None, expert: Mapping[Id, Id] | None = None
) -> PreferenceRows:
    i, e = item or {}, expert or {}
    return dataclasses.replace(
        answers,
        lists=tuple((q, e.get(x, x), i.get(y, y), v) for q, x, y, v in answers.lists),
        votes=tuple((q, e.get(x, x), i.get(a, a), i.get(b, b), t, w) for q, x, a, b, t, w in answers.votes),
        candidates=tuple((q, i.get(y, y)) for q, y in answers.candidates),
    )


def _aggregate_rows(cls: type[Aggregator], rows: PreferenceRows) -> Consensus:
    return fit_and_aggregate(cls(), rows.to_preferences())


@check()
def renaming_items(cls: type[Aggregator]) -> None:
    """Renaming the items gives the same tie groups under the new names."""
    names: dict[Id, Id] = dict(zip(ITEMS, reversed(ITEMS), strict=True))
    for answers in build_samples(cls, 6):
        a, b = (_aggregate_rows(cls, rows) for rows in (answers, _rename_ids(answers, item=names)))
        for query in a.queries:
            renamed = [{names.get(i, i) for i in g} for g in tie_groups(a, query)]
            assert renamed == tie_groups(b, query), (answers, query)


@check()
def renaming_experts(cls: type[Aggregator]) -> None:
    """Renaming the experts does not change the result."""
    names: dict[Id, Id] = dict(zip(EXPERTS, reversed(EXPERTS), strict=True))
    for answers in build_samples(cls):
        renamed = _rename_ids(answers, expert=names)
        assert_close(_aggregate_rows(cls, answers), _aggregate_rows(cls, renamed))


@check()
def row_order(cls: type[Aggregator]) -> None:
    """The order of rows, queries and experts does not change the result."""
    random = np.random.default_rng(0)
    for answers in build_samples(cls):
        shuffled = reorder_rows(answers, random.permutation(max(len(answers.lists), len(answers.votes))))
        assert_close(_aggregate_rows(cls, answers), _aggregate_rows(cls, shuffled))


@check(lambda tags: tags.per_query)
def other_queries_do_not_matter(cls: type[Aggregator]) -> None:
    """A query alone gets the same result as among others."""
    for preferences in build_sample_preferences(cls):
        method = fit_aggregator(cls(), preferences)
        whole = method.aggregate(preferences)
        for query in whole.queries:
            alone = method.aggregate(preferences.select([query]))
            assert alone.ranking(query) == whole.ranking(query)
            np.testing.assert_allclose(
                [r.score for r in alone[query]], [r.score for r in whole[query]], rtol=1e-9
            )


@check(reads_lists)
def unanimity(cls: type[Aggregator]) -> None:
    """If all experts agree, their ranking is the consensus."""
    for seed in range(3):
        order = [str(i) for i in np.random.default_rng(seed).permutation(ITEMS)]
        preferences = Preferences.from_lists({"q": dict.fromkeys(EXPERTS, order)})
        assert fit_and_aggregate(cls(), preferences).ranking("q") == order


def _duplicate_experts(answers: PreferenceRows, experts: Sequence[Id] = EXPERTS) -> PreferenceRows:
    names = {e: f"{e}-again" for e in experts}
    copies = _rename_ids(answers, expert=names)
    lists = tuple(row for row in copies.lists if row[1] in names.values())
    votes = tuple(row for row in copies.votes if row[1] in names.values())
    return dataclasses.replace(answers, lists=answers.lists + lists, votes=answers.votes + votes)


@check(lambda tags: not tags.supervised)  # supervised methods learn how to weigh twice as many lists
def doubling(cls: type[Aggregator]) -> None:
    """Duplicating every expert does not change the order."""
    for answers in build_samples(cls):
        doubled = _duplicate_experts(answers)
        assert_close(_aggregate_rows(cls, answers), _aggregate_rows(cls, doubled), scores=False)


def _can_weight(tags: Tags) -> bool:
    return tags.weighted and not tags.supervised


def _build_weights(preferences: Preferences, **given: float) -> dict[Id, float]:
    return {e: given.get(str(e), 1.0) for e in preferences.experts}


@check(_can_weight)
def weight_two(cls: type[Aggregator]) -> None:
    """An expert with weight two counts as two identical experts."""
    for answers in build_samples(cls):
        preferences, more = answers.to_preferences(), _duplicate_experts(answers, ["e1"])
        weighted = fit_and_aggregate(cls(weights=_build_weights(preferences, e1=2.0)), preferences)
        assert_close(weighted, _aggregate_rows(cls, more), scores=False)


@check(_can_weight)
def weight_zero(cls: type[Aggregator]) -> None:
    """An expert with weight zero counts as absent."""
    for preferences in build_sample_preferences(cls):
        weighted = fit_and_aggregate(cls(weights=_build_weights(preferences, e1=0.0)), preferences)
        assert_close(weighted, fit_and_aggregate(cls(), preferences.without_expert("e1")))


@check(lambda tags: _can_weight(tags) and reads_lists(tags))
def weights_matter(cls: type[Aggregator]) -> None:
    """Weights (1, 0), (0, 1) and (1, 1) give different results; a wrong number of weights is an error."""
    preferences = Preferences.from_lists({"q": {"a": ["x", "y", "z"], "b": ["z", "y", "x"]}})
    outcomes = [
        tuple(map(frozenset, tie_groups(fit_and_aggregate(cls(weights=w), preferences), "q")))
        for w in ([1, 0], [0, 1], [1, 1])
    ]
    assert len(set(outcomes)) == 3, outcomes
    three = cls(weights=[1.0, 2.0, 3.0])
    assert "3 weights for 2 experts" in catch_message(ParameterError, lambda: three.aggregate(preferences))


@check(reads_lists)
def larger_is_better(cls: type[Aggregator]) -> None:
    """An item that all experts rank first has the largest score."""
    preferences = Preferences.from_lists(
        {"q": {"a": ["m", "x", "y"], "b": ["m", "y", "z"], "c": ["m", "z", "x"]}}
    )
    consensus = fit_and_aggregate(cls(), preferences)
    assert consensus.ranking("q")[0] == "m"
    assert consensus.scores[preferences.index.slot("q", "m")] == consensus.scores.max()


@check(lambda tags: tags.condorcet)
def condorcet_winner_first(cls: type[Aggregator]) -> None:
    """An item that beats every other item by majority is first, without a tie."""
    count = 0
    for seed in range(40):
        preferences = sample_rows(Form.RANKING, seed, complete=True).to_preferences()
        consensus = fit_and_aggregate(cls(), preferences)
        for query in preferences.queries:
            one = preferences.select([query])
            size = len(one.index.items)
            ranks = np.zeros((len(one.lists), size), np.int64)
            ranks[one.lists.list_of_row, one.lists.item] = one.lists.rank
            wins = (ranks[:, :, None] < ranks[:, None, :]).sum(axis=0)
            beats = (wins > wins.T).sum(axis=1)
            if beats.max() == size - 1:
                count += 1
                assert tie_groups(consensus, query)[0] == {one.index.items[int(beats.argmax())]}
    assert count > 10


@check(lambda tags: tags.additive)
def contributions_add_up(cls: type[Aggregator]) -> None:
    """The reported contributions of the experts add up to the score."""
    for preferences in build_sample_preferences(cls, 1):
        method = cls(weights=_build_weights(preferences, e1=2.0, e3=0.5)) if cls.tags.weighted else cls()
        method = fit_aggregator(method, preferences)
        # an item that no expert lists is placed last by a score that no expert contributes
        listed = None if cls.tags.supervised else 1
        for place in method.aggregate(preferences)["q1"][:listed]:
            parts = method.explain(preferences, "q1", place.item).values()
            np.testing.assert_allclose(sum(parts), place.score, rtol=1e-9, atol=1e-12)
