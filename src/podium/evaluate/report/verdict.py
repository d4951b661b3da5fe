"""The verdict: which method, how sure that is, and what to do."""

from __future__ import annotations

import math

from podium.data.markup import figure, p_value
from podium.evaluate.comparison import Comparison, Pair
from podium.evaluate.report.content import Finding
from podium.evaluate.report.material import Material

__all__ = ["verdict"]

ALIKE = 0.9  # mean RBO from which it matters little which method is taken
NAMED = 3


def verdict(found: Material, checks: tuple[Finding, ...]) -> tuple[str, ...]:
    """One to three sentences."""
    if found.judged and found.comparison is not None:
        said = _by_labels(found, found.comparison)
    elif found.board is not None:
        said = _by_votes(found)
    else:
        said = _without_labels(found)
    wrong = [c.name for c in checks if c.verdict == "wrong"]
    if wrong:
        said.append(f"Mend this first, or do not trust the figures: {', '.join(dict.fromkeys(wrong))}.")
    return tuple(said)


def _by_labels(found: Material, c: Comparison) -> list[str]:
    metric, best = c.metrics[0], found.best
    mean = c.row(best, metric).mean
    if c.queries < 2:
        return [
            f"On the one query that has labels, {best} has {metric} {figure(mean)}; one query decides nothing."
        ]
    pairs = [p for p in c.pairs(metric) if best in (p.better, p.worse)]
    rivals = [p for p in pairs if found.run not in (p.better, p.worse)]
    if rivals and all(p.wins == p.losses == 0 for p in rivals):
        same = f"All {len(found.results)} methods do equally well on every query ({metric} {figure(mean)})"
        return [f"{same}; take the simplest.", *_against_run(found, pairs, c.level)]
    said = [_winner(best, mean, metric, rivals, c.level), *_against_run(found, pairs, c.level)]
    return said + _if_learned(found, c)


def _if_learned(found: Material, c: Comparison) -> list[str]:
    """A model that was trained on what it is measured by wins for nothing."""
    methods = found.asked.methods
    if not methods[found.best].tags.supervised:
        return []
    plain = [n for n in found.results if not methods[n].tags.supervised]
    metric = c.metrics[0]
    top = max(plain, key=lambda n: c.row(n, metric).mean, default=None)
    other = (
        "" if top is None else f" The best that learned nothing is {top} ({figure(c.row(top, metric).mean)})."
    )
    return [f"{found.best} learned from labels: if from these, measure it on others first.{other}"]


def _winner(best: str, mean: float, metric: str, rivals: list[Pair], level: float) -> str:
    if not rivals:
        return f"{best} has {metric} {figure(mean)}; it is the only method."
    open_ = [p.worse if p.better == best else p.better for p in rivals if not _shown(p, level)]
    first = f"Use {best}: its {metric} of {figure(mean)} is the highest of {len(rivals) + 1} methods"
    if not open_:
        near = min(rivals, key=lambda p: p.difference)
        return f"{first}, and by more than luck (nearest: {near.worse}, {_lead(near)})."
    more = f" and {len(open_) - NAMED} more" if len(open_) > NAMED else ""
    names = ", ".join(open_[:NAMED]) + more
    if len(open_) == len(rivals):
        return f"{first}, but no difference to {names} can be shown: any of them will do."
    return f"{first}; no difference to {names} can be shown, all others are worse."


def _against_run(found: Material, pairs: list[Pair], level: float) -> list[str]:
    pair = next((p for p in pairs if found.run in (p.better, p.worse)), None)
    if pair is None or found.run is None:
        return []
    if not _shown(pair, level):
        if pair.better == found.run and pair.difference > 0:
            return [f"That fusing beats the {found.run} cannot be shown: that one is ahead ({_lead(pair)})."]
        return [f"That fusing beats the {found.run} cannot be shown ({_lead(pair)})."]
    if pair.better == found.run:
        return [
            f"The {found.run} alone is better ({_lead(pair)}): fusing does harm here; look at the experts."
        ]
    return [f"Fusing pays: it is above the {found.run} by {_lead(pair)}."]


def _shown(pair: Pair, level: float) -> bool:
    return math.isfinite(pair.p_holm) and pair.p_holm < 1 - level


def _lead(pair: Pair) -> str:
    low, high, p = figure(pair.low, sign=True), figure(pair.high, sign=True), p_value(pair.p_holm)
    span = f" [{low}, {high}]" if low and high else ""
    return f"{figure(pair.difference, sign=True)}{span}, p {p if p.startswith('<') else f'= {p}'}"


def _by_votes(found: Material) -> list[str]:
    board = found.board
    assert board is not None
    first = board.rows[0]
    group = next((g for g in board.groups if first.item in g), ())
    others = [str(i) for i in group if i != first.item]
    stop, why = board.stopping(top=1)
    if others:
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        said = f"{first.item} leads, but cannot be told apart from {', '.join(others[:NAMED])}{more}."
    else:
        said = (
            f"{first.item} leads, and can be told apart from all others ({100 * board.settings.level:g} %)."
        )
    return [said] if stop and not others else [said, f"To settle who is first, {why}."]


def _without_labels(found: Material) -> list[str]:
    why = (
        "There are no labels" if found.asked.labels is None else "The labels say nothing about these results"
    )
    if found.crowd is not None:
        return [f"{why}, so the annotators are measured against each other: {found.crowd.lines[0]}.",
                f"Take {found.best}; annotators that need a look are listed below."]  # fmt: skip
    if len(found.results) < 2:
        return [f"{why}, so nothing says how good {found.best} is."]
    alike = float(found.alike().mean())
    said = [f"{why}, so nothing says which method is better."]
    names = f"the {len(found.results)} methods"
    if alike >= ALIKE:
        return [
            *said,
            f"It matters little: the rankings of {names} agree (mean RBO {alike:.2f}); take {found.best}.",
        ]
    return [*said, f"It matters: the rankings of {names} differ (mean RBO {alike:.2f}); judge some queries, "
            "first those on which they differ most."]  # fmt: skip
