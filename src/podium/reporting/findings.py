"""Checks of the report's reliability, each with a verdict and a reason."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from podium.core.tables import format_decimal, format_percent
from podium.core.text import join_names
from podium.evaluate.comparison_result import UNDERRATED
from podium.metrics.base import parse
from podium.reporting.blocks import FindingVerdict, ReportFinding
from podium.reporting.inputs import ReportInputs
from podium.reporting.vote_parts import list_vote_findings

__all__ = ["collect_findings"]

WELL, POORLY = 0.8, 0.4  # judged share of the top: reliable from the first, unreliable below the second
MANY, FEW = 50, 10  # queries
TIED = 0.2  # share of tied items in the top from which the tie rule matters
ABSENT = 0.5  # share of queries below which an expert counts as sparse
LUCK = 0.01  # selection bias, relative to the best method's mean, from which it is reported
BAD_JUDGES = 0.1  # share of random or malicious judgements that is reported
TOP = 10
FLAGS: dict[str, tuple[FindingVerdict, str, str]] = {  # verb for one expert, predicate for several
    "unmatched ids": ("wrong", "shares", "share no query or item with the others"),
    "unjudged": ("wrong", "has", "have no judged item"),
    "reversed": ("wrong", "orders", "order most pairs the opposite way"),
    "all tied": ("check", "puts", "put all items at one rank"),
    "no answers": ("check", "gives", "give no answers"),
}
WORDS: dict[str, FindingVerdict] = {"ok": "ok", "warning": "check", "unknown": "unknown"}
ORDER: tuple[FindingVerdict, ...] = ("wrong", "check", "unknown", "ok")


def collect_findings(inputs: ReportInputs) -> tuple[ReportFinding, ...]:
    """All checks, most severe first."""
    every = [
        *_check_labels(inputs),
        *_check_experts(inputs),
        *_check_results(inputs),
        *_check_annotators(inputs),
    ]
    for check in inputs.board.checks if inputs.board is not None else ():
        every.append(ReportFinding(check.name, WORDS[check.verdict], check.text))
    if inputs.vote_parts is not None:
        every += list_vote_findings(inputs.vote_parts)
    known = {f.text for f in every}
    every += [ReportFinding("warning", "check", text) for text in inputs.warnings if text not in known]
    return tuple(sorted(every, key=lambda f: ORDER.index(f.verdict)))


def _check_labels(inputs: ReportInputs) -> Iterator[ReportFinding]:
    labels, p = inputs.request.labels, inputs.preferences
    if labels is None:
        yield ReportFinding("labels", "unknown", "there are none, so the methods cannot be compared")
        return
    yield from _check_held_out(inputs)
    if inputs.comparison is None:
        if inputs.held_out is None:
            ids = f"the input has {p.queries[:3]}, the labels have {labels.queries[:3]}"
            text = f"they are for other queries: {ids}; ids are compared exactly"
            yield ReportFinding("labels", "wrong", text)
        return
    count = inputs.comparison.queries
    verdict: FindingVerdict = "ok" if count >= MANY else "check" if count >= FEW else "wrong"
    words = "one query is not evidence" if count == 1 else f"{count:,} queries are evaluated"
    if count < FEW:
        words += "; only large differences can be detected"
    yield ReportFinding("enough queries", verdict, words)
    here = len(p) - int((labels.queries.codes_of(p.queries) >= 0).sum())
    if here:
        text = f"{here:,} of {len(p):,} queries have no labels and are excluded"
        yield ReportFinding("labeled queries", "check", text)
    lacking = int((~inputs.comparison.evaluations[inputs.best_method].has_result).sum())
    if lacking:
        text = f"{lacking:,} of {count:,} judged queries are not in the input and count as 0"
        yield ReportFinding("answered queries", "wrong" if lacking > count / 2 else "check", text)
    metric = inputs.comparison.metrics[0]
    share, cutoff = inputs.comparison.row(inputs.best_method, metric).judged, parse(metric).cutoff
    where = "of the ranking" if cutoff is None else f"of the top {cutoff}"
    verdict = "ok" if share >= WELL else "check" if share >= POORLY else "wrong"
    text = f"{format_percent(share)} {where} of {inputs.best_method} is judged"
    text += "" if verdict == "ok" else "; the rest counts as not relevant"
    if not inputs.has_judged_items:
        verdict, text = "wrong", f"no item {where} of any result is judged; the scores are meaningless"
    yield ReportFinding("judged items", verdict, text)
    uneven = [n for n in inputs.comparison.notes if UNDERRATED in n]
    if uneven:
        yield ReportFinding("fair judging", "check", uneven[0])
    yield from _check_choice(inputs)


def _check_held_out(inputs: ReportInputs) -> Iterator[ReportFinding]:
    """Scores on training queries do not measure a model's quality."""
    held = inputs.held_out
    if held is None:
        return
    for name, reason in held.left_out.items():
        yield ReportFinding("held-out queries", "check", f"{name} is not evaluated: {reason}")
    yield from (ReportFinding("held-out queries", "check", note) for note in held.notes)
    if held.unaffected and not held.used:
        verb = "was" if len(held.unaffected) == 1 else "were"
        text = f"{', '.join(held.unaffected)} {verb} not fitted on any of these queries"
        yield ReportFinding("held-out queries", "ok", text)


def _check_choice(inputs: ReportInputs) -> Iterator[ReportFinding]:
    """The number of methods compared, the selection bias of the best one, and the methods not tried."""
    assert inputs.comparison is not None
    count, metric = len(inputs.measured_methods), inputs.comparison.metrics[0]
    if count > 1 and inputs.has_judged_items and inputs.expected_mean == inputs.expected_mean:
        mean = inputs.comparison.row(inputs.best_method, metric).mean
        text = (
            f"{inputs.best_method} is the best of {count} on all judged queries, with {metric} {format_decimal(mean)}; "
            f"leave-one-out selection gives {format_decimal(inputs.expected_mean)}"
        )
        luck = mean - inputs.expected_mean > LUCK
        text += "; expect that on new queries" if luck else ""
        yield ReportFinding("choice of the best", "check" if luck else "ok", text)
    if inputs.request.slow:
        text = f"{count} methods were compared; these are slow on these data and are compared only when named"
        yield ReportFinding("methods tried", "ok", f"{text}: {', '.join(inputs.request.slow)}")


def _check_experts(inputs: ReportInputs) -> Iterator[ReportFinding]:
    d, p = inputs.diagnosis, inputs.preferences
    if len(p.experts) == 1:
        yield ReportFinding("experts", "unknown", "there is only one expert; agreement cannot be measured")
    if d is None:
        if inputs.crowd is None and len(p.experts) > 1:
            text = f"{len(p.experts):,} experts are too many for a diagnosis of each"
            yield ReportFinding("experts", "unknown", text)
        return
    for flag, (verdict, verb, words) in FLAGS.items():
        who = [str(r.expert) for r in d.rows if flag in r.flags]
        if who:
            predicate = words if len(who) > 1 else " ".join((verb, *words.split()[1:]))
            yield ReportFinding(flag, verdict, f"{join_names(who)} {predicate}")
    worth = f"effective number of independent experts: {d.effective:.1f} of {len(d):,}"
    if d.copies:
        pairs = [f"{c.first} and {c.second}" for c in d.copies]
        yield ReportFinding("copies", "check", f"{worth}; near-duplicates: {join_names(pairs)}")
    else:
        half = d.effective < len(d) / 2
        yield ReportFinding("independent experts", "check" if half else "ok", worth)
    part = [r for r in d.rows if 0 < r.queries < ABSENT * len(p)]
    if part:
        least = min(part, key=lambda r: r.queries)
        fewest = f"fewest {least.expert}, {least.queries:,} of {len(p):,}"
        text = f"{len(part)} of {len(d)} experts answer less than half of the queries; {fewest}"
        yield ReportFinding("coverage", "check", text)


def _check_results(inputs: ReportInputs) -> Iterator[ReportFinding]:
    for name, result in inputs.results.items():
        if not result.diagnostics.converged:
            text = f"{name} did not converge: {'; '.join(result.diagnostics.notes)}"
            yield ReportFinding("converged", "check", text)
    best = inputs.results[inputs.best_method]
    place = np.arange(len(best.order)) - best.index.starts[best.index.query_of_slot]
    top = place < TOP
    share = float(best.tied[top].mean()) if top.any() else 0.0
    text = f"{format_percent(share)} of the top {TOP} ranks of {inputs.best_method} are tied"
    text += "; the tie rule, not the experts, orders these items" if share > TIED else ""
    yield ReportFinding("ties", "check" if share > TIED else "ok", text)


def _check_annotators(inputs: ReportInputs) -> Iterator[ReportFinding]:
    crowd = inputs.crowd
    if crowd is None:
        return
    total = sum(r.judgements for r in crowd.rows) or 1
    bad = [r for r in crowd.rows if r.verdict in ("random", "malicious")]
    share = sum(r.judgements for r in bad) / total
    text = f"{len(bad)} of {len(crowd):,} annotators look random or malicious: {format_percent(share)} of judgements"
    yield ReportFinding("annotators", "check" if share > BAD_JUDGES else "ok", text)
    worth = f"effective number of independent judges, by volume: {crowd.effective:.1f}"
    if crowd.copies:
        groups = [
            " and ".join(map(str, g[:4])) + (f" and {len(g) - 4} more" if len(g) > 4 else "")
            for g in crowd.copies
        ]
        text = f"{worth}; these give the same answers, including mistakes: {join_names(groups)}"
        yield ReportFinding("copies", "check", text)
    else:
        yield ReportFinding("copies", "ok", f"{worth}; no copies detected")
