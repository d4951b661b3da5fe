"""One row per annotator: verdict, reasons and uncertainty."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from podium.analysis.annotators.agreement_coefficients import (
    AgreementCoefficient,
    build_unit_labels,
    compute_coefficients,
)
from podium.analysis.annotators.annotator_verdicts import (
    FEW,
    LEAD,
    MALICIOUS,
    OVERLAP,
    RANDOM,
    SENTENCE_ORDER,
    VERDICTS,
    Reversal,
    compute_posterior,
    judge_annotators,
)
from podium.analysis.annotators.chart import draw_annotators
from podium.analysis.annotators.crowd_judgements import AgreementCounts, CrowdJudgements
from podium.analysis.annotators.peers import (
    FAR,
    JudgementTimes,
    SideShares,
    compare_peers,
    count_effective_judges,
    measure_sides,
    measure_speed,
)
from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.core.params import suggest_names
from podium.core.results import Result, ViewBlock, build_grid, show_field
from podium.core.tables import Grid, format_decimal, format_p_value
from podium.core.text import format_count, join_names
from podium.data.consensus import Consensus
from podium.data.frames import FrameBackend, records_frame
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
from podium.methods.automatic_choice import choose_method
from podium.methods.base import make

__all__ = ["VERDICTS", "Annotator", "Annotators", "annotators"]

SHOWN = 5  # groups of copies per summary
COEFFICIENTS = {
    "alpha_nominal": "Krippendorff's alpha nominal",
    "alpha_ordinal": "ordinal",
    "alpha_interval": "interval",
    "fleiss_kappa": "Fleiss' kappa",
    "cohen_kappa": "Cohen's kappa",
}
# figure -> number of decimals; None where the data do not determine it
FIGURES = {"agreement": 2, "peers": 2, "accuracy": 2, "consistency": 2, "first": 2, "seconds": 1, "weight": 2}
CELLS: dict[str, Callable[[Any], str]] = {
    "annotator": show_field("annotator"),
    "verdict": show_field("verdict"),
    "flags": show_field("flags", ", ".join),
    "quality": show_field("quality", "{:.2f}".format),
    "interval": lambda r: f"{r.low:.2f} .. {r.high:.2f}",
    "short verdict": lambda r: r.verdict.removesuffix(" judgements"),
    "short interval": lambda r: f"{r.low:.2f}..{r.high:.2f}",
    **{name: show_field(name, "{:,}".format) for name in ("judgements", "pairs", "queries")},
    **{name: show_field(name, partial(format_decimal, digits=digits)) for name, digits in FIGURES.items()},
}
SHORT = {n: n for n in ("annotator", "verdict", "flags", "quality", "interval", "judgements")}


@dataclass(frozen=True)
class Annotator:
    """One annotator; None means the data do not determine the value.

    `quality` is the probability that a pair is ordered as the other annotators together order it: 1 always,
    0.5 at random, 0 always reversed. The annotator's own judgements are excluded from that reference.
    """

    annotator: Id
    verdict: str  # one of `VERDICTS`
    missing: str | None  # evidence required for a clear verdict
    flags: tuple[str, ...]  # "always first", "copies X", "very fast", ...
    quality: float
    low: float  # interval of the quality
    high: float
    judgements: int
    overlap: int  # judgements of items that others judge too
    pairs: int  # pairs that both the annotator and the others order
    queries: int
    agreement: float | None  # share of pairs ordered as in the consensus, own judgements included
    peers: float | None  # share of the others who give the same answers
    consistency: float | None  # share of equal answers to repeated pairs
    first: float | None  # share of votes for the item shown first; None if side and item are confounded
    first_p: float | None  # p-value of no side effect, given the items' strengths
    seconds: float | None  # median time per judgement
    accuracy: float | None  # share of pairs ordered as in the gold labels
    gold_pairs: int
    weight: float | None  # weight given by the consensus method


@dataclass(frozen=True, eq=False, repr=False)
class Annotators(Result[Annotator]):
    """All annotators, those that need attention first, then by number of judgements.

    >>> votes = [v for q in range(20) for v in [(q, "ann", "a", "b"), (q, "ben", "a", "b"), (q, "cid", "b", "a")]]
    >>> query, who, won, lost = zip(*votes)
    >>> found = annotators(Preferences.from_comparisons(query, who, won, lost), method="copeland")
    >>> [(row.annotator, row.verdict) for row in found.rows]
    [('cid', 'malicious'), ('ann', 'reliable'), ('ben', 'reliable')]
    """

    rows: tuple[Annotator, ...]
    method: str
    level: float
    effective: float  # effective number of independent, equally busy judges
    copies: tuple[tuple[Id, ...], ...] = field(default=())  # groups with near-identical answers
    reversal: Reversal | None = None  # held-out check of annotators with reversed answers
    coefficients: tuple[AgreementCoefficient, ...] = ()  # Krippendorff's alpha, Fleiss' and Cohen's kappa

    key, shown, title = "annotator", 15, "Annotators"
    facts = ("method", "level", "counts", "effective", "copies", "reversal", "coefficients", "lines", "rows")
    chart = draw_annotators

    def headline(self) -> str:
        """Number of annotators by verdict."""
        return self.lines[0]

    def grid(self, headings: Mapping[str, str] = SHORT, *, top: int | None = None) -> Grid:
        """A table of the columns named in `headings`, each under its heading.

        Figures that the data do not determine for anyone (agreement, accuracy, ...) have no column.
        """
        chosen = [(heading, CELLS[name]) for name, heading in headings.items()]
        unknown = {heading for name, heading in headings.items() if name in FIGURES}
        return build_grid(chosen, self.rows[:top], left=3, optional=unknown)

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The summary, then the table."""
        return *self.lines, self.grid()

    @property
    def counts(self) -> dict[str, int]:
        """Number of annotators per verdict and flag; copies are counted as "copies"."""
        verdicts = Counter(row.verdict for row in self.rows)
        flags = Counter(
            flag.split(" ")[0] if flag.startswith("copies ") else flag
            for row in self.rows
            for flag in row.flags
        )
        return {v: verdicts[v] for v in SENTENCE_ORDER} | dict(sorted(flags.items()))

    @property
    def lines(self) -> tuple[str, ...]:
        """Summary in sentences."""
        counts = self.counts
        named = [v for v in SENTENCE_ORDER if v != OVERLAP or counts[v]]
        kinds = ", ".join(f"{counts[v]:,} {'with ' if v in (FEW, OVERLAP) else ''}{v}" for v in named)
        lines = [f"{format_count(len(self), 'annotator')}: {kinds}"]
        total = sum(row.judgements for row in self.rows) or 1
        advice = {MALICIOUS: _describe_reversal(self.reversal), RANDOM: "exclude them, or weight by quality",
                  OVERLAP: "ask other annotators about the same items"}  # fmt: skip
        for verdict, what in advice.items():
            rows = [row for row in self.rows if row.verdict == verdict]
            if rows:
                part = sum(row.judgements for row in rows) / total
                lines.append(
                    f"{verdict}: {part:.1%} of the judgements, by {join_names([row.annotator for row in rows])}; {what}"
                )
        for flag in FLAGS:
            # copies are flagged together with their names, and listed below
            rows = [row for row in self.rows if flag in row.flags]
            if rows:
                lines.append(f"{flag}: {join_names([row.annotator for row in rows])}")
        for group in self.copies[:SHOWN]:
            lines.append(f"near-identical answers, mistakes included: {join_names(group, SHOWN)}")
        if len(self.copies) > SHOWN:
            lines.append(f"{len(self.copies) - SHOWN} more groups with near-identical answers")
        lines.append(f"effective number of independent judges, by volume: {self.effective:.1f}")
        if self.coefficients:
            figures = (
                f"{COEFFICIENTS[c.name]} {c.value:.2f} ({c.low:.2f}..{c.high:.2f})" for c in self.coefficients
            )
            lines.append(f"agreement beyond chance: {', '.join(figures)}")
        return tuple(lines)

    def filter_by_flag(self, word: str) -> Annotators:
        """Only annotators with a verdict or flag that begins with `word`."""
        kept = tuple(r for r in self.rows if any(f.startswith(word.lower()) for f in (r.verdict, *r.flags)))
        known = [*VERDICTS, *FLAGS]
        if not kept and not any(name.startswith(word.lower()) for name in known):
            raise ParameterError(f"there is no flag {word!r}; {suggest_names(word, known)}")
        return replace(self, rows=kept)

    def to_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """A dataframe with one row per annotator, in the order of `rows`; columns as in `Annotator`."""
        return records_frame(self.rows, Annotator, "annotator", backend)


def _describe_reversal(reversal: Reversal | None) -> str:
    """Advise reversing their answers where that helps on held-out pairs, otherwise excluding them."""
    if reversal is None or math.isnan(reversal.reversed):
        return "exclude them"
    shares = f"held-out pairs of the others predicted: {reversal.left_out:.1%} without them, "
    shares += f"{reversal.reversed:.1%} with their answers reversed"
    p = format_p_value(reversal.p)
    if reversal.helps:
        return f"reversing their answers helps: {shares} (p {p if p.startswith('<') else f'= {p}'})"
    return f"exclude them; reversing their answers shows no benefit: {shares}"


FIRST, SECOND, COPIES = "always first", "always second", "copies"
FAST, SLOW, EQUAL, CHANGING = "very fast", "very slow", "all answers equal", "contradicts itself"
FLAGS = (FIRST, SECOND, COPIES, EQUAL, CHANGING, FAST, SLOW)


def annotators(
    preferences: Preferences,
    consensus: Consensus | None = None,
    *,
    method: str = "auto",
    labels: Labels | None = None,
    times: JudgementTimes | None = None,
    level: float = 0.95,
) -> Annotators:
    """Report on every annotator (expert) of the preferences.

    `method` computes the `consensus` unless it is given; `auto` is what `podium fuse` takes for this form of
    input (`choose_method`). Gold `labels` add the accuracy against them; `times`
    maps annotators to the seconds per judgement. Intervals come from Jeffreys' beta posterior at `level`;
    pairs of one list count by their effective sample size.
    """
    if not 0 < level < 1:
        raise ParameterError(f"level is {level}; accepted: numbers between 0 and 1, both excluded")
    crowd = CrowdJudgements(preferences)
    if not crowd.judgements.any():
        raise InputError("there are no judgements", remedy="give ratings, lists or votes of annotators")
    if consensus is None:
        chosen = choose_method(preferences).method if method == "auto" else make(method)
        consensus = chosen.aggregate(preferences)
    counts = crowd.count_against_others()
    judged = judge_annotators(crowd, counts, level)
    shown, near = measure_sides(crowd), compare_peers(crowd)
    copies = () if near is None else tuple(tuple(g) for g in near.copies)
    index = preferences.index
    grades = np.full(crowd.slot_count, np.nan) if labels is None else labels.align(index)
    if labels is not None and np.isnan(grades).all():  # nearly always a mistake
        warnings.warn(
            f"no judged item has a label: the judgements have items such as {index.items[:3]} of queries "
            f"{index.queries[:3]}, the labels have queries {labels.queries[:3]}; "
            "ids are compared exactly, case and type included",
            PodiumWarning,
            stacklevel=2,
        )
    gold = crowd.count_against_scores(grades)
    pace = measure_speed(crowd, times)
    flags = _collect_flags(crowd, level, pace.deviation, shown.one_sided, copies)
    figures = _compute_figures(crowd, consensus, gold, shown) | {"seconds": pace.median}
    pairs, gold_pairs = counts.same + counts.other, gold.same + gold.other
    place = np.array([VERDICTS.index(v) for v in judged.verdicts], np.int64)
    order = np.lexsort((np.arange(len(crowd)), -crowd.judgements, place)).tolist()
    rows = tuple(
        Annotator(
            annotator=preferences.experts[i],
            verdict=judged.verdicts[i],
            missing=judged.missing[i],
            flags=tuple(flags[i]),
            quality=float(judged.quality[i]),
            low=float(judged.low[i]),
            high=float(judged.high[i]),
            judgements=int(crowd.judgements[i]),
            overlap=int(crowd.overlap[i]),
            pairs=round(float(pairs[i])),
            queries=int(crowd.queries[i]),
            gold_pairs=round(float(gold_pairs[i])),
            **{name: None if math.isnan(c[i]) else float(c[i]) for name, c in figures.items()},
        )
        for i in order
    )
    worth = count_effective_judges(crowd, near)
    coefficients = compute_coefficients(build_unit_labels(crowd), level)
    return Annotators(rows, consensus.method, level, worth, copies, judged.reversal, coefficients)


def _compute_figures(
    crowd: CrowdJudgements, consensus: Consensus, gold: AgreementCounts, shown: SideShares
) -> dict[str, F8]:
    """Figures that the data may not determine, by annotator; NaN means unknown."""
    at = crowd.preferences.index.locate(consensus.index)
    agreed = crowd.count_against_scores(
        np.where(at >= 0, consensus.scores[at] if len(consensus.scores) else np.nan, np.nan)
    )
    pairs, equal, _ = crowd.count_repeats()
    # the method's own weights, unless it gives all annotators the same
    weights = np.full(len(crowd), np.nan)
    given, experts = consensus.expert_weights, consensus.experts
    if given is not None and experts is not None and not (given == 1).all():
        at = experts.codes_of(crowd.preferences.experts)
        weights = np.where(at >= 0, given[at], np.nan)
    return {
        "agreement": _divide_or_nan(agreed.same, agreed.same + agreed.other),
        "peers": crowd.count_shared_answers().share,
        "consistency": _divide_or_nan(equal, pairs),
        "first": shown.share,
        "first_p": shown.p,
        "accuracy": _divide_or_nan(gold.same, gold.same + gold.other),
        "weight": weights,
    }


def _divide_or_nan(part: F8, whole: F8) -> F8:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0), np.float64)


def _collect_flags(
    crowd: CrowdJudgements,
    level: float,
    deviation: F8,
    one_sided: dict[Id, float],
    copies: Sequence[Sequence[Id]],
) -> list[list[str]]:
    # repeated answers that are significantly less consistent than those of the others
    pairs, same, repeats = crowd.count_repeats()
    equal = np.nan_to_num(_divide_or_nan(same, pairs)) * repeats
    high = compute_posterior(equal, repeats - equal, level)[2]
    usual = (equal.sum() - equal + 0.5) / (repeats.sum() - repeats + 1)
    marks = {
        EQUAL: crowd.find_constant_annotators(),
        CHANGING: (repeats > 0) & (high < 0.5 + LEAD * (usual - 0.5)),
        FAST: deviation < -FAR,
        SLOW: deviation > FAR,
    }
    flags = {
        who: [name for name, which in marks.items() if which[code]]
        for code, who in enumerate(crowd.preferences.experts)
    }
    for who, share in one_sided.items():
        flags[who].append(FIRST if share > 0.5 else SECOND)
    for group in copies:
        more = f" and {len(group) - 2} more" if len(group) > 2 else ""
        for who in group:
            if EQUAL not in flags[who]:  # constant answers agree with all other constant answers
                other = next(o for o in group if o != who)
                flags[who].append(f"{COPIES} {other}{more}")
    return list(flags.values())
