"""Computations of the workers: from a request to a response of plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.core.errors import ParameterError
from podium.data.ids import Id
from podium.methods.base import Aggregator, make
from podium.studio.api import request_models
from podium.studio.api.fuse_answers import method_document
from podium.studio.api.request_parsing import (
    build_features,
    build_labels,
    build_preferences,
    build_votes,
    check_work,
    resolve_method,
)

if TYPE_CHECKING:
    from podium.data.consensus import Consensus
    from podium.data.labels import Labels

Document = dict[str, Any]


def answer_aggregate(given: request_models.AggregateRequest, state: Any) -> Document:
    """Apply any method or saved model to many queries: `podium.make(method).aggregate(preferences)`."""
    limits = state.settings.limits
    method = resolve_method(given, state.store)
    preferences = build_preferences(given, limits)
    check_work(limits, preferences, method)
    consensus = method.aggregate(preferences, build_features(given.features, limits), ties=given.ties)
    rankings = []
    for number, query in enumerate(consensus.queries):
        begin, end = consensus.index.starts[number : number + 2].tolist()
        last = end if given.top is None else min(end, begin + given.top)
        order, items = consensus.order[begin:last], consensus.index.items[begin:end]
        rankings.append({
            "query": query,
            "items": [items[slot - begin] for slot in order.tolist()],
            "scores": consensus.scores[order].tolist(),
            "tied": consensus.tied[begin:last].tolist(),
        })  # fmt: skip
    weights: list[Document] = []
    if consensus.experts is not None and consensus.expert_weights is not None:
        pairs = zip(consensus.experts.tolist(), consensus.expert_weights.tolist(), strict=True)
        weights = [{"expert": expert, "weight": weight} for expert, weight in pairs]
    diagnostics = consensus.diagnostics
    return {
        "results": rankings,
        "weights": weights,
        "diagnostics": {
            "converged": bool(diagnostics.converged),
            "iterations": diagnostics.iterations,
            "objective": diagnostics.objective,
            "notes": list(diagnostics.notes),
        },
        "method": method_document(method),
        "fingerprint": preferences.fingerprint,
    }


def answer_evaluate(given: request_models.EvaluateRequest, state: Any) -> Document:
    """The metrics of every expert and every named method: `podium.evaluate.evaluate`."""
    from podium.evaluate import expert_rankings

    limits = state.settings.limits
    if not given.experts and not given.methods:
        raise ParameterError("nothing to evaluate; name methods, or set experts to true")
    methods = [make(spec) for spec in given.methods]
    preferences, labels = build_preferences(given, limits), build_labels(given.labels, limits)
    features = build_features(given.features, limits)
    results = []
    for expert in preferences.experts.tolist() if given.experts else ():
        ranking = expert_rankings(preferences, expert)
        results.append(_evaluate_result(given, ranking, labels, expert, None))
    for method in methods:
        check_work(limits, preferences, method)
        described = features if method.tags.uses_features else None
        consensus = method.aggregate(preferences, described)
        results.append(_evaluate_result(given, consensus, labels, None, method))
    return {"results": results, "fingerprint": preferences.fingerprint}


def _evaluate_result(
    given: request_models.EvaluateRequest,
    consensus: Consensus,
    labels: Labels,
    expert: Id | None,
    method: Aggregator | None,
) -> Document:
    from podium.evaluate import evaluate as evaluated

    result = consensus.with_ties(given.ties, single=given.ties == "trec")
    evaluation = evaluated(result, labels, given.metrics, queries=given.queries)
    names = [str(m) for m in evaluation.metrics]
    per_query = [
        {"query": query, "values": dict(zip(names, evaluation.values[:, i].tolist(), strict=True))}
        for i, query in enumerate(evaluation.queries if given.per_query else ())
    ]
    return {
        "name": str(expert) if method is None else repr(method),
        "kind": "expert" if method is None else "method",
        "expert": expert,
        "method": None if method is None else method_document(method),
        "mean": evaluation.mean(),
        "queries": len(evaluation),
        "missing": evaluation.missing,
        "unlabelled": evaluation.unlabelled,
        "per_query": per_query if given.per_query else None,
    }


def answer_explain(given: request_models.ExplainRequest, state: Any) -> Document:
    """The contribution of each expert and, with `over`, what would swap two items: `podium.explain`."""
    from podium.analysis.explain import explain as explained

    limits = state.settings.limits
    method = resolve_method(given, state.store)
    preferences = build_preferences(given, limits)
    check_work(limits, preferences, method)
    features = build_features(given.features, limits)
    if given.query is not None:
        preferences.index.query_code(given.query)  # raises an error that lists the queries
    elif len(preferences) != 1:
        raise ParameterError(f"there are {len(preferences)} queries; choose one with `query`")
    query = preferences.queries[0] if given.query is None else given.query
    explanation = explained(method, preferences, query, given.item, over=given.over, features=features)
    return explanation.to_dict() | {"method": method_document(method), "fingerprint": preferences.fingerprint}


def answer_leaderboard(given: request_models.LeaderboardRequest, state: Any) -> Document:
    """Scores with intervals, ranks, checks and what to compare next: `podium.analysis.leaderboard`."""
    from podium.analysis.leaderboard import LeaderboardSettings
    from podium.analysis.leaderboard import leaderboard as made

    preferences = build_votes(given.votes, state.settings.limits)
    check_work(state.settings.limits, preferences)
    settings = given.model_dump(exclude={"votes", "next"})
    if settings["l2"] is None:
        del settings["l2"]
    board = made(preferences, settings=LeaderboardSettings(**settings))
    top = given.top if "top" in given.model_fields_set else None
    stop, why = board.stopping(top=top)
    proposals = board.next(given.next, top=top) if given.next else []
    return board.to_dict() | {
        "stop": bool(stop),
        "reason": why,
        "next": [vars(p) for p in proposals],
        "fingerprint": preferences.fingerprint,
    }


def answer_annotators(given: request_models.AnnotatorsRequest, state: Any) -> Document:
    """Quality with intervals, verdicts and flags: `podium.analysis.annotators`."""
    from podium.analysis.annotators import annotators as known

    limits = state.settings.limits
    method = make(given.method)
    preferences = build_preferences(given, limits)
    check_work(limits, preferences)
    labels = None if given.labels is None else build_labels(given.labels, limits)
    annotators = known(preferences, method.aggregate(preferences), labels=labels, level=given.level)
    return annotators.to_dict() | {"method": method_document(method), "fingerprint": preferences.fingerprint}
