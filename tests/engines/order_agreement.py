"""Whether a real engine ranked as its emulator says, and as the method does where the deployment is exact."""

from __future__ import annotations

from collections import Counter

from engines.random_inputs import ENGINE_LIMIT, Batch, Rankings
from podium import Preferences
from podium.data.consensus import Consensus
from podium.deployment import Deployment, OrderCheck, compare_orders
from podium.deployment.database_run import read_order
from podium.deployment.engine_input import cut_lists, prepare_input, select_experts
from podium.methods.dialects.dialect import ScoreDialect
from podium.methods.scores import CombSum

COUNTS: dict[str, Counter[str]] = {}  # by engine: inputs, and those compared with the method too


def assert_same_orders(
    batch: Batch, preferences: Preferences, rankings: Rankings, *, limit: int | None = ENGINE_LIMIT
) -> None:
    """The engine returned every listed item up to its limit, with the order and the scores of the emulator.

    `preferences` has the lists as the engine numbered them. Orders are compared up to ties in the precision of
    the engine; the order of an exact deployment is also compared with that of the method.
    """
    deployment = batch.deployment
    counts = COUNTS.setdefault(deployment.engine.title, Counter())
    counts["inputs"] += len(batch.lists)
    dialect = getattr(deployment.form.method, "dialect", None)
    tolerance = 1e-12 if dialect is None else dialect.tolerance
    given = prepare_input(preferences, deployment.form.sources, deployment.depth)
    assert_all_were_returned(batch, given, rankings, limit)
    rows = ((query, item) for query, ranked in rankings.items() for item, _ in ranked)
    engine = read_order(preferences.index, rows)
    emulated = deployment.emulate(preferences)
    assert_no_difference(
        batch, "the emulator", compare_orders(engine, emulated, tolerance), rankings, emulated
    )
    assert_same_scores(batch, rankings, emulated, 10 * tolerance)
    if deployment.exact:
        counts["exact"] += len(batch.lists)
        whole = keep_named_experts(deployment, preferences)
        expected = deployment.method.aggregate(cut_lists(whole, deployment.depth))
        check = compare_orders(engine, expected, tolerance)
        assert_no_difference(batch, "the method", check, rankings, expected)


def assert_no_difference(
    batch: Batch, rival: str, check: OrderCheck, rankings: Rankings, expected: Consensus
) -> None:
    """No input has another order."""
    if check.first is not None:
        about = f"has another order than {rival} in {check.queries - check.same} of {check.queries} inputs"
        raise AssertionError(describe_difference(batch, about, check.first.query, rankings, expected))


def assert_same_scores(batch: Batch, rankings: Rankings, emulated: Consensus, tolerance: float) -> None:
    """The scores that the engine returned are those of the emulator, relative to the largest numbers that it adds.

    An engine whose weights sum to 1 counts retrievers that return nothing, and the emulator only those of the
    query: their scores differ by a factor, which is taken from the first item.
    """
    dialect = getattr(batch.deployment.form.method, "dialect", None)
    has_factor = dialect is not None and dialect.weights == "simplex"
    for query, ranked in rankings.items():
        scores = {entry.item: entry.score for entry in emulated[query]}
        largest = max(abs(s) for s in scores.values())
        if isinstance(batch.deployment.form.method, ScoreDialect | CombSum):
            weight = max(batch.deployment.form.weights)
            largest += weight * max(abs(s) for values in batch.lists[query].values() for _, s in values)
        if has_factor and ranked and ranked[0][1]:
            factor = scores[ranked[0][0]] / ranked[0][1]
            ranked = [(item, factor * score) for item, score in ranked]
        if any(abs(s - scores[item]) > tolerance * largest for item, s in ranked if s is not None):
            about = "has other scores than the emulator"
            raise AssertionError(describe_difference(batch, about, query, rankings, emulated))


def keep_named_experts(deployment: Deployment, preferences: Preferences) -> Preferences:
    """The lists of the deployed experts; a method with weights picks its own."""
    if deployment.method.weights is not None:
        return preferences
    return select_experts(preferences, deployment.form.sources)


def assert_all_were_returned(batch: Batch, given: Preferences, rankings: Rankings, limit: int | None) -> None:
    """Each query has as many items as its lists within the depth, up to the limit, and none twice."""
    lists = given.lists
    for code, query in enumerate(given.index.queries):
        rows = slice(lists.row_starts[code], lists.row_starts[code + 1])
        listed = {given.index.items[i] for i in lists.item[rows].tolist()}
        ranked = [item for item, _ in rankings.get(query, ())]
        about = f"{batch.deployment!r} on {batch.lists[query]}: {ranked}"
        assert len(ranked) == min(len(listed), limit or len(listed)), about
        assert len(set(ranked)) == len(ranked), about
        assert set(ranked) <= listed, about


def describe_difference(batch: Batch, about: str, query: str, rankings: Rankings, expected: Consensus) -> str:
    """The first input that differs: the configuration, the lists, both orders."""
    return "\n".join(
        [
            f"{batch.deployment.engine.title} {about}",
            f"deployment: {batch.deployment!r}, depth {batch.deployment.depth}",
            *(f"list of {expert}: {ranked}" for expert, ranked in batch.lists[query].items()),
            f"engine:   {rankings.get(query, [])}",
            f"expected: {[(entry.item, entry.score) for entry in expected[query]]}",
            batch.deployment.body,
        ]
    )
