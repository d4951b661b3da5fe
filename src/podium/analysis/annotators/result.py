"""One row per annotator: verdict, reasons and uncertainty."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from podium.analysis.annotators.agreement_coefficients import (
    AgreementCoefficient,
    build_unit_labels,
    compute_coefficients,
)
from podium.analysis.annotators.annotator_sentences import describe_annotators
from podium.analysis.annotators.annotator_verdicts import (
    LEAD,
    SENTENCE_ORDER,
    VERDICTS,
    AnnotatorVerdicts,
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
from podium.analysis.annotators.reversal_check import Reversal
from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.core.params import suggest_names
from podium.core.results import Result, ViewBlock, build_grid, show_field
from podium.core.tables import Grid, format_decimal
from podium.data.consensus import Consensus
from podium.data.frames import FrameBackend, records_frame
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels.dispatch import B1, F8
from podium.methods.base import make

__all__ = ["VERDICTS", "Annotator", "Annotators", "annotators"]

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
        return tuple(describe_annotators(self, FLAGS[:2] + FLAGS[3:]))

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


FIRST, SECOND, COPIES = "always first", "always second", "copies"
FAST, SLOW, EQUAL, CHANGING = "very fast", "very slow", "all answers equal", "contradicts itself"
FLAGS = (FIRST, SECOND, COPIES, EQUAL, CHANGING, FAST, SLOW)


def annotators(
    preferences: Preferences,
    consensus: Consensus | None = None,
    *,
    method: str = "crowdagg",
    labels: Labels | None = None,
    times: JudgementTimes | None = None,
    level: float = 0.95,
) -> Annotators:
    """Report on every annotator (expert) of the preferences.

    `method` computes the `consensus` unless it is given. Gold `labels` add the accuracy against them; `times`
    maps annotators to the seconds per judgement. Intervals come from Jeffreys' beta posterior at `level`;
    pairs of one list count by their effective sample size.
    """
    if not 0 < level < 1:
        raise ParameterError(f"level is {level}; accepted: numbers between 0 and 1, both excluded")
    crowd = CrowdJudgements(preferences)
    if not crowd.judgements.any():
        raise InputError("there are no judgements", remedy="give ratings, lists or votes of annotators")
    if consensus is None:
        consensus = make(method).aggregate(preferences)
    counts = crowd.count_against_others()
    judged = judge_annotators(crowd, counts, level)
    shown, near = measure_sides(crowd), compare_peers(crowd)
    columns = _compute_columns(crowd, counts, judged, consensus, labels, times, shown)
    flags = _collect_flags(crowd, columns, level, shown.one_sided, near.copies)
    rows = _build_rows(crowd, columns, judged, flags)
    groups = () if near.agreement is None else tuple(tuple(g) for g in near.agreement.copies)
    worth = count_effective_judges(crowd, near.agreement)
    coefficients = compute_coefficients(build_unit_labels(crowd), level)
    return Annotators(rows, consensus.method, level, worth, groups, judged.reversal, coefficients)


class _AnnotatorColumns(NamedTuple):
    """Per annotator; NaN means unknown."""

    quality: F8
    low: F8
    high: F8
    pairs: F8
    agreement: F8
    peers: F8
    consistency: F8
    repeats: F8  # repeated answers to a comparison
    first: F8
    first_p: F8
    seconds: F8
    deviation: F8
    accuracy: F8
    gold_pairs: F8
    weight: F8


def _compute_columns(
    crowd: CrowdJudgements,
    counts: AgreementCounts,
    judged: AnnotatorVerdicts,
    consensus: Consensus,
    labels: Labels | None,
    times: JudgementTimes | None,
    shown: SideShares,
) -> _AnnotatorColumns:
    at = crowd.preferences.index.locate(consensus.index)
    agreed = crowd.count_against_scores(
        np.where(at >= 0, consensus.scores[at] if len(consensus.scores) else np.nan, np.nan)
    )
    gold = crowd.count_against_scores(_align_labels(crowd, labels))
    pairs, equal, again = crowd.count_repeats()
    pace = measure_speed(crowd, times)
    return _AnnotatorColumns(
        judged.quality, judged.low, judged.high, counts.same + counts.other,
        _divide_or_nan(agreed.same, agreed.same + agreed.other), crowd.count_shared_answers().share,
        _divide_or_nan(equal, pairs), again, shown.share, shown.p, pace.median, pace.deviation,
        _divide_or_nan(gold.same, gold.same + gold.other), gold.same + gold.other,
        _align_method_weights(crowd, consensus),
    )  # fmt: skip


def _align_labels(crowd: CrowdJudgements, labels: Labels | None) -> F8:
    """Labels by slot, NaN if unknown; labels that match no judged item are nearly always a mistake."""
    if labels is None:
        return np.full(crowd.slot_count, np.nan)
    index = crowd.preferences.index
    grades = labels.align(index)
    if np.isnan(grades).all():
        warnings.warn(
            f"no judged item has a label: the judgements have items such as {index.items[:3]} of queries "
            f"{index.queries[:3]}, the labels have queries {labels.queries[:3]}; "
            "ids are compared exactly, case and type included",
            PodiumWarning,
            stacklevel=4,
        )
    return grades


def _divide_or_nan(part: F8, whole: F8) -> F8:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0), np.float64)


def _align_method_weights(crowd: CrowdJudgements, consensus: Consensus) -> F8:
    """The method's own weights; NaN if it has none or gives all annotators the same."""
    weights = np.full(len(crowd), np.nan)
    given, experts = consensus.expert_weights, consensus.experts
    if given is None or experts is None or (given == 1).all():
        return weights
    at = experts.codes_of(crowd.preferences.experts)
    return np.where(at >= 0, given[at], np.nan)


def _find_inconsistent(c: _AnnotatorColumns, level: float) -> B1:
    """Annotators whose repeated answers are significantly less consistent than those of the others."""
    equal = np.nan_to_num(c.consistency) * c.repeats
    high = compute_posterior(equal, c.repeats - equal, level)[2]
    usual = (equal.sum() - equal + 0.5) / (c.repeats.sum() - c.repeats + 1)
    return np.asarray((c.repeats > 0) & (high < 0.5 + LEAD * (usual - 0.5)), np.bool_)


def _collect_flags(
    crowd: CrowdJudgements,
    c: _AnnotatorColumns,
    level: float,
    one_sided: dict[Id, float],
    copies: dict[Id, list[Id]],
) -> list[list[str]]:
    experts = crowd.preferences.experts
    flags: list[list[str]] = [[] for _ in range(len(crowd))]
    for name, which in (
        (EQUAL, crowd.find_constant_annotators()),
        (CHANGING, _find_inconsistent(c, level)),
        (FAST, c.deviation < -FAR),
        (SLOW, c.deviation > FAR),
    ):
        for code in np.flatnonzero(which).tolist():
            flags[code].append(name)
    for who, share in one_sided.items():
        flags[_find_code(experts, who)].append(FIRST if share > 0.5 else SECOND)
    for who, others in copies.items():
        if EQUAL in flags[_find_code(experts, who)]:
            continue  # constant answers agree with all other constant answers
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        flags[_find_code(experts, who)].append(f"{COPIES} {others[0]}{more}")
    return flags


def _find_code(experts: Any, who: Id) -> int:
    return int(experts.code_of(who))


def _build_rows(
    crowd: CrowdJudgements, c: _AnnotatorColumns, judged: AnnotatorVerdicts, flags: Sequence[Sequence[str]]
) -> tuple[Annotator, ...]:
    verdicts = judged.verdicts
    place = np.array([VERDICTS.index(v) for v in verdicts], np.int64)
    order = np.lexsort((np.arange(len(crowd)), -crowd.judgements, place))
    values = {name: column.tolist() for name, column in c._asdict().items()}
    experts, judgements, queries = (
        crowd.preferences.experts.tolist(),
        crowd.judgements.tolist(),
        crowd.queries.tolist(),
    )
    optional = ("agreement", "peers", "consistency", "first", "first_p", "seconds", "accuracy", "weight")
    rows = []
    for i in order.tolist():
        known = {name: None if math.isnan(values[name][i]) else values[name][i] for name in optional}
        rows.append(
            Annotator(
                annotator=experts[i],
                verdict=verdicts[i],
                missing=judged.missing[i],
                flags=tuple(flags[i]),
                quality=values["quality"][i],
                low=values["low"][i],
                high=values["high"][i],
                judgements=judgements[i],
                overlap=int(crowd.overlap[i]),
                pairs=round(values["pairs"][i]),
                queries=queries[i],
                gold_pairs=round(values["gold_pairs"][i]),
                **known,
            )
        )
    return tuple(rows)
