"""Can you trust it: checks as data, each with a verdict and a reason."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from podium.data.labels import Labels
from podium.data.markup import format_decimal, format_percent
from podium.evaluate.report.content import Finding, Verdict
from podium.evaluate.report.material import Material
from podium.metrics.base import parse

__all__ = ["findings"]

WELL, POORLY = 0.8, 0.4  # judged share of the top from which figures are good, below which they are guesswork
MANY, FEW = 50, 10  # queries
TIED = 0.2  # share of tied items in the top from which the tie rule decides much
ABSENT = 0.5  # share of the queries below which an expert answers few
LUCK = 0.01  # of the mean of the best method that is due to its choice, from which a reader should know
BAD_JUDGES = 0.1  # share of the judgements that are random or malicious
TOP = 10
FLAGS: dict[str, tuple[Verdict, str, str]] = {  # said of one expert, and of several
    "strange ids": ("wrong", "shares", "share no query or item with the others"),
    "unjudged": ("wrong", "has", "have no judged item"),
    "upside down": ("wrong", "orders", "order things mostly the other way round"),
    "all tied": ("look", "puts", "put all items in one place"),
    "silent": ("look", "says", "say nothing"),
}
WORDS: dict[str, Verdict] = {"ok": "ok", "warning": "look", "unknown": "unknown"}
ORDER: tuple[Verdict, ...] = ("wrong", "look", "unknown", "ok")


def findings(found: Material) -> tuple[Finding, ...]:
    """All checks, the gravest first."""
    every = [*_labels(found), *_experts(found), *_results(found), *_judges(found), *_board(found)]
    known = {f.text for f in every}
    every += [Finding("warning", "look", text) for text in found.said if text not in known]
    return tuple(sorted(every, key=lambda f: ORDER.index(f.verdict)))


def _labels(found: Material) -> Iterator[Finding]:
    labels, p = found.asked.labels, found.preferences
    if labels is None:
        yield Finding("labels", "unknown", "there are none, so nothing says which method is better")
        return
    yield from _held_out(found)
    if found.comparison is None:
        if found.held is None:
            yield Finding("labels", "wrong", _strangers(found, labels))
        return
    count = found.comparison.queries
    verdict: Verdict = "ok" if count >= MANY else "look" if count >= FEW else "wrong"
    words = "one query proves nothing" if count == 1 else f"{count:,} queries are measured"
    yield Finding(
        "enough queries", verdict, words if count >= FEW else f"{words}; few differences can be shown"
    )
    here = len(p) - int((labels.queries.codes_of(p.queries) >= 0).sum())
    if here:
        yield Finding(
            "labelled queries", "look", f"{here:,} of {len(p):,} queries have no labels and are left out"
        )
    lacking = int((~found.comparison.evaluations[found.best].answered).sum())
    if lacking:
        text = f"{lacking:,} of {count:,} judged queries are not in the input and count as 0"
        yield Finding("answered queries", "wrong" if lacking > count / 2 else "look", text)
    yield _judged(found)
    uneven = [n for n in found.comparison.notes if "may be better than its figures" in n]
    if uneven:
        yield Finding("fair judging", "look", uneven[0])
    yield from _choice(found)


def _held_out(found: Material) -> Iterator[Finding]:
    """What models were fitted on says nothing of them."""
    held = found.held
    if held is None:
        return
    for name, reason in held.left_out.items():
        yield Finding("held-out queries", "look", f"{name} has no figures here: {reason}")
    yield from (Finding("held-out queries", "look", note) for note in held.notes)
    if held.checked and not held.used:
        verb = "was" if len(held.checked) == 1 else "were"
        text = f"{', '.join(held.checked)} {verb} fitted on none of these queries"
        yield Finding("held-out queries", "ok", text)


def _choice(found: Material) -> Iterator[Finding]:
    """How many methods the best was chosen from, what that adds to its mean, and which were not tried."""
    assert found.comparison is not None
    count, metric = len(found.measured), found.comparison.metrics[0]
    if count > 1 and found.judged and found.expected == found.expected:
        mean = found.comparison.row(found.best, metric).mean
        text = (
            f"{found.best} is the best of {count} on these queries, with {metric} {format_decimal(mean)}; choosing by "
            "all "
            f"other queries gives {format_decimal(found.expected)} on a query"
        )
        luck = mean - found.expected > LUCK
        yield Finding(
            "choice of the best", "look" if luck else "ok", text + ("; expect that" if luck else "")
        )
    if found.asked.slow:
        text = f"{count} methods were compared; these take long on these data, and are compared when named: "
        yield Finding("methods tried", "ok", text + ", ".join(found.asked.slow))


def _strangers(found: Material, labels: Labels) -> str:
    ours, theirs = found.preferences.queries[:3], labels.queries[:3]
    return f"they are for other queries: the input has {ours}, the labels have {theirs}; ids are compared exactly"


def _judged(found: Material) -> Finding:
    assert found.comparison is not None
    metric = found.comparison.metrics[0]
    share = found.comparison.row(found.best, metric).judged
    cutoff = parse(metric).cutoff
    where = "of the ranking" if cutoff is None else f"of the top {cutoff}"
    if not found.judged:
        return Finding(
            "judged items", "wrong", f"no item {where} of any result is judged; the figures say nothing"
        )
    verdict: Verdict = "ok" if share >= WELL else "look" if share >= POORLY else "wrong"
    text = f"{format_percent(share)} {where} of {found.best} is judged"
    return Finding(
        "judged items", verdict, text if verdict == "ok" else f"{text}; the rest counts as not relevant"
    )


def _experts(found: Material) -> Iterator[Finding]:
    d, p = found.diagnosis, found.preferences
    if len(p.experts) == 1:
        yield Finding(
            "experts", "unknown", "there is one expert only; there is nobody to agree or disagree with"
        )
    if d is None:
        if found.crowd is None and len(p.experts) > 1:
            text = f"{len(p.experts):,} experts are too many to be looked at one by one"
            yield Finding("experts", "unknown", text)
        return
    for flag, (verdict, verb, words) in FLAGS.items():
        who = [str(r.expert) for r in d.rows if flag in r.flags]
        if who:
            said = words if len(who) > 1 else " ".join((verb, *words.split()[1:]))
            yield Finding(flag, verdict, f"{_names(who)} {said}")
    worth = f"{len(d):,} experts are worth about {d.effective:.1f} independent ones"
    if d.copies:
        pairs = [f"{c.first} and {c.second}" for c in d.copies]
        yield Finding("copies", "look", f"{worth}; these say nearly the same: {_names(pairs)}")
    else:
        half = d.effective < len(d) / 2
        yield Finding("independent experts", "look" if half else "ok", worth)
    part = [r for r in d.rows if 0 < r.queries < ABSENT * len(p)]
    if part:
        least = min(part, key=lambda r: r.queries)
        fewest = f"fewest {least.expert}, {least.queries:,} of {len(p):,}"
        text = f"{len(part)} of {len(d)} experts answer less than half of the queries; {fewest}"
        yield Finding("coverage", "look", text)


def _results(found: Material) -> Iterator[Finding]:
    for name, result in found.results.items():
        if not result.diagnostics.converged:
            yield Finding(
                "converged", "look", f"{name} did not converge: {'; '.join(result.diagnostics.notes)}"
            )
    best = found.results[found.best]
    place = np.arange(len(best.order)) - best.index.starts[best.index.query_of_slot]
    top = place < TOP
    share = float(best.tied[top].mean()) if top.any() else 0.0
    text = f"{format_percent(share)} of the first {TOP} places of {found.best} are tied"
    if share > TIED:
        yield Finding("ties", "look", f"{text}; there the tie rule decides, not the experts")
    else:
        yield Finding("ties", "ok", text)


def _judges(found: Material) -> Iterator[Finding]:
    crowd = found.crowd
    if crowd is None:
        return
    total = sum(r.judgements for r in crowd.rows) or 1
    bad = [r for r in crowd.rows if r.verdict in ("random", "malicious")]
    share = sum(r.judgements for r in bad) / total
    text = f"{len(bad)} of {len(crowd):,} annotators look random or malicious: {format_percent(share)} of judgements"
    yield Finding("annotators", "look" if share > BAD_JUDGES else "ok", text)
    worth = f"by volume and independence they are worth {crowd.effective:.1f} judges"
    if crowd.copies:
        groups = [
            " and ".join(map(str, g[:4])) + (f" and {len(g) - 4} more" if len(g) > 4 else "")
            for g in crowd.copies
        ]
        yield Finding("copies", "look", f"{worth}; these answer alike, mistakes included: {_names(groups)}")
    else:
        yield Finding("copies", "ok", f"{worth}; nobody copies")


def _board(found: Material) -> Iterator[Finding]:
    for check in found.board.checks if found.board is not None else ():
        yield Finding(check.name, WORDS[check.verdict], check.text)


def _names(names: list[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
