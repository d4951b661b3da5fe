"""Build a report from preferences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.core.errors import check_type
from podium.core.version import __version__
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.evaluate.comparison_tables import INTERVALS
from podium.methods.base import Aggregator, make
from podium.metrics.base import MetricSpec, parse_all
from podium.reporting.findings import collect_findings
from podium.reporting.inputs import ReportRequest, collect_inputs
from podium.reporting.report_page import Report
from podium.reporting.sections import build_sections
from podium.reporting.verdict import describe_verdict
from podium.reporting.vote_parts import VoteSources

__all__ = ["report"]


def report(
    preferences: Preferences,
    labels: Labels | None = None,
    *,
    methods: Sequence[str | Aggregator] | Mapping[str, str | Aggregator] = (),
    metrics: Sequence[MetricSpec] = ("ndcg@10", "map"),
    queries: Sequence[Id] = (),
    features: Features | None = None,
    times: Mapping[Id, Any] | None = None,
    tuning: Any = None,
    vote_sources: VoteSources | None = None,
    learn: bool = True,
    title: str = "",
    made: Mapping[str, str] | None = None,
) -> Report:
    """Analyze preferences and the methods that aggregate them.

    Labels decide which method is best; without them the report shows how much methods and experts agree.
    `methods` are names, aggregators or fitted models (default: a few that suit the data); `queries` are shown
    in full (default: up to three informative ones); `times` are seconds per annotator; `tuning` is the document
    of a parameter search; `vote_sources` are single votes with their times and slices, and gold for the judges (the
    report on votes checks voters without them too); `made` adds entries to the last section. With `learn` and enough
    labels, a model is fitted to show which experts it trusts. The same input gives the same page.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["b", "c"]}})
    >>> found = report(p, methods=["rrf", "borda"])
    >>> found.verdict[0]
    'There are no labels, so the methods cannot be compared.'
    >>> [s.name for s in found.sections]
    ['methods', 'queries', 'experts']
    """
    check_type(preferences, Preferences, "report", "give preferences and labels, not a data set of both")
    parse_all(metrics)
    if not isinstance(methods, Mapping):
        each = [methods] if isinstance(methods, str) else methods
        methods = {m if isinstance(m, str) else repr(m): m for m in each}
    named = {name: make(m) for name, m in methods.items()}
    inputs = collect_inputs(
        ReportRequest(
            preferences,
            labels,
            features,
            times,
            named,
            tuple(metrics),
            tuple(queries),
            learn,
            vote_sources=vote_sources or VoteSources(),
        )
    )
    checks, count = collect_findings(inputs), len(preferences)
    heading = title or f"{len(inputs.results)} methods on {count:,} quer{'y' if count == 1 else 'ies'}"
    # the facts needed to reproduce the report
    forms = ", ".join(sorted(form.value for form in preferences.forms))
    facts = {
        "Podium": __version__,
        "input": f"{preferences!r}; forms: {forms}; unlisted items are {preferences.unlisted}",
        "fingerprint": preferences.fingerprint,
        "labels": "none" if labels is None else repr(labels),
        "methods": "; ".join(f"{n}: {m!r}" if repr(m) != n else n for n, m in inputs.request.methods.items()),
    }
    if inputs.comparison is not None:
        c = inputs.comparison
        nested = ", its p-value nested cross-validation that repeats the choice" * (inputs.answer is not None)
        facts["tests"] = (
            f"paired {c.test} test; {100 * c.level:g} % intervals {INTERVALS[c.test]}; tables use Holm's correction, "
            f"the verdict maxT over all pairs of methods{nested}; ties and score precision as in trec_eval; a judged "
            "query without results counts as 0"
        )
    facts |= made or {}
    return Report(heading, describe_verdict(inputs, checks), checks, build_sections(inputs, tuning), facts)
