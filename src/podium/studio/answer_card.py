"""The one answer of a project: what to use, by how much it is better, and how sure that is.

Every page shows this card. It is the choice of `podium.find_answer` among all methods that are quick on the data, or a
model of a finished tuning job that is better on held-out queries; a leaderboard of votes has its first item as the
answer.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from podium.analysis.answer import find_answer
from podium.analysis.leaderboard import Leaderboard
from podium.core.errors import PodiumError
from podium.core.tables import format_decimal, format_p_value
from podium.core.text import join_names
from podium.core.version import __version__
from podium.reporting.inputs import ReportInputs
from podium.storage.digests import digest_bytes
from podium.storage.files import write_atomically
from podium.studio.item_texts import ItemText, rename_items
from podium.studio.job_queue import Job

__all__ = ["AnswerCard", "AnswerFile", "AnswerGain", "build_answer_card"]

SURE, LIKELY = 0.01, 0.05  # p-values below which a gain is certain, and likely
NAMED = 3
CardCertainty = Literal["high", "moderate", "low", "unknown"]
MARKS = {"high": "ok", "moderate": "check", "low": "unknown", "unknown": "unknown"}
TUNED = "on held-out queries; the choice was repeated in every fold"


@dataclass(frozen=True)
class AnswerGain:
    """The gain of the winner over one alternative, with its interval."""

    over: str
    difference: float
    low: float
    high: float

    def describe(self, digits: int = 4) -> str:
        """The gain and its interval in words."""
        return (
            f"{format_decimal(self.difference, digits, sign=True)}{_format_span(self.low, self.high, digits)}"
        )


def _format_span(low: float, high: float, digits: int, *, sign: bool = True) -> str:
    ends = [format_decimal(end, digits, sign=sign) or "open" for end in (low, high)]
    return "" if ends == ["open", "open"] else f" ({ends[0]} to {ends[1]})"


@dataclass(frozen=True)
class AnswerCard:
    """The answer: a winner with its value, its gains, one p-value, and how sure it is."""

    winner: str
    spec: str  # as a method or model of the studio; empty for an item
    headline: str
    metric: str = ""
    value: float = math.nan
    gains: tuple[AnswerGain, ...] = ()
    p: float = math.nan
    correction: str = ""
    certainty: CardCertainty = "unknown"
    explanation: str = ""
    source: str = ""  # what was tried
    title: str = ""  # of the winner, if it is an item that has one
    low: float = math.nan  # interval of the value
    high: float = math.nan
    digits: int = 4  # decimals of the figures

    @property
    def name(self) -> str:
        """What a page calls the winner."""
        return self.title or self.winner

    @property
    def mark(self) -> str:
        """The class of the mark that shows the certainty."""
        return MARKS[self.certainty]

    @property
    def p_text(self) -> str:
        """The p-value in words; empty if there is none."""
        text = format_p_value(self.p) if math.isfinite(self.p) else ""
        return text if not text or text.startswith("<") else f"= {text}"

    @property
    def value_text(self) -> str:
        """The value of the metric."""
        return format_decimal(self.value, self.digits)

    @property
    def interval_text(self) -> str:
        """The interval of the value."""
        return _format_span(self.low, self.high, self.digits, sign=False).strip(" ()")

    def describe(self) -> str:
        """The choice of a method in a sentence, with the figures of the card and what they were measured on."""
        gains = [f"{gain.describe(self.digits)} over {gain.over}" for gain in self.gains]
        gain = f", {' and '.join(gains)}" if gains else ""
        p = f" (p {self.p_text}, corrected)" if self.p_text else ""
        value = f"on held-out queries its {self.metric} is {self.value_text}"
        return f"{self.headline} {self.name}: {value}{gain}{p}." if self.value_text else self.explanation

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


class AnswerFile:
    """The answer for some data and finished jobs, kept in the studio folder: all processes show the same one."""

    def __init__(
        self, folder: Path, fingerprint: str, jobs: Sequence[Job], texts: Mapping[str, ItemText]
    ) -> None:
        done = sorted(job.id for job in jobs if job.state == "done" and job.kind == "tune")
        titles = [f"{item}\t{about.title}" for item, about in texts.items() if about.title]
        name = digest_bytes("\n".join([__version__, fingerprint, *done, *titles]).encode())
        self.path = folder / "answers" / f"{name}.json"

    def read(self) -> AnswerCard | None:
        """The kept answer; None if there is none, or none that this version reads."""
        try:
            values = json.loads(self.path.read_text(encoding="utf-8"))
            gains = tuple(AnswerGain(**gain) for gain in values.pop("gains"))
            return AnswerCard(**values, gains=gains)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, card: AnswerCard) -> None:
        """Keep an answer; a full disk only means that it is computed again."""
        with contextlib.suppress(OSError, PodiumError):
            self.path.parent.mkdir(exist_ok=True, mode=0o700)
            write_atomically([json.dumps(card.to_dict()).encode()], self.path, overwrite=True)


def build_answer_card(
    inputs: ReportInputs, jobs: Sequence[Job] = (), texts: Mapping[str, ItemText] | None = None
) -> AnswerCard:
    """The answer for data whose parts were computed, with the tuning jobs of the project and texts of the items."""
    if inputs.comparison is not None and inputs.has_judged_items:
        card = _answer_by_labels(inputs)
        tuned = [c for job in jobs if (c := _answer_by_tuning(job, card.metric)) is not None]
        best = max(tuned, key=lambda c: c.value, default=None)
        return best if best is not None and best.value > card.value else card
    if inputs.board is not None:
        return _answer_by_votes(inputs.board, texts or {})
    answer = find_answer(inputs.request.preferences)
    why = "there are no labels" if inputs.request.labels is None else "the labels do not cover these results"
    name = answer.method.name
    return AnswerCard(
        name,
        name,
        "Use",
        certainty="unknown",
        explanation=f"{answer.describe()} How good it is on these data is not known, because {why}.",
        source="the rule of auto for such data",
    )


def _answer_by_labels(inputs: ReportInputs) -> AnswerCard:
    comparison, request = inputs.comparison, inputs.request
    assert comparison is not None
    metric, methods = comparison.metrics[0], list(inputs.measured_methods)
    answer = inputs.answer or find_answer(
        request.preferences,
        request.labels,
        metric=metric,
        methods=methods,
        learned=False,
        budget=None,
        ties="trec",
    )
    gains = tuple(
        AnswerGain(
            row.name,
            row.difference or 0.0,
            *(math.nan if end is None else end for end in (row.low, row.high)),
        )
        for row in answer.rows
        if row.name != answer.method.name
    )
    return AnswerCard(
        answer.method.name, answer.method.name, "Use", metric, math.nan if answer.value is None else answer.value,
        gains, math.nan if answer.p is None else answer.p, answer.correction, answer.certainty,
        f"{answer.explanation} {answer.loss}", f"{len(methods)} methods on {answer.queries:,} held-out queries",
        low=math.nan if answer.low is None else answer.low, high=math.nan if answer.high is None else answer.high,
    )  # fmt: skip


def judge_certainty(p: float, differences: Sequence[float]) -> CardCertainty:
    """How sure a gain is, by its p-value; a loss is never sure to be a gain.

    >>> judge_certainty(0.001, [0.1]), judge_certainty(0.03, [0.1]), judge_certainty(0.001, [0.1, -0.2])
    ('high', 'moderate', 'low')
    """
    if not math.isfinite(p):
        return "unknown"
    if any(d <= 0 for d in differences) or p >= LIKELY:
        return "low"
    return "high" if p < SURE else "moderate"


def _answer_by_tuning(job: Job, metric: str) -> AnswerCard | None:
    """The answer of a tuning job that is done and measured the metric on held-out queries."""
    result = job.result if isinstance(job.result, dict) else {}
    document = result.get("document") or {}
    if job.kind != "tune" or job.state != "done" or document.get("metric") != metric:
        return None
    value = document.get("tuned")
    if not document.get("held_out") or not isinstance(value, int | float):
        return None
    rows = {row["name"]: row for row in document.get("rows", ())}
    names = {"best expert in training": "the best expert", "rrf": "rrf"}
    gains = tuple(
        AnswerGain(word, *(float(rows[name][k]) for k in ("difference", "low", "high")))
        for name, word in names.items()
        if name in rows and rows[name]["low"] is not None
    )
    p = max((float(rows[n]["p"]) for n in names if n in rows and rows[n]["p"] is not None), default=math.nan)
    trials = len(document.get("trials", ()))
    low, high = document.get("score_interval") or (math.nan, math.nan)  # jobs of older versions have none
    return AnswerCard(
        document.get("config", "the tuned model"), f"model:{result.get('model', '')}", "Use the tuned model",
        metric, float(value), gains, p, TUNED, judge_certainty(p, [g.difference for g in gains]),
        document.get("sentence", ""), f"{trials:,} configurations on {document.get('queries', 0):,} queries",
        low=low, high=high,
    )  # fmt: skip


def _answer_by_votes(plain: Leaderboard, texts: Mapping[str, ItemText]) -> AnswerCard:
    board = rename_items(plain, texts)
    first, winner = board.rows[0], str(plain.rows[0].item)
    group = next((g for g in board.groups if first.item in g), ())
    tied = [str(item) for item in group if item != first.item]
    gains: tuple[AnswerGain, ...] = ()
    p = math.nan
    if len(board.rows) > 1:
        second = board.rows[1].item
        p = board.p_value(first.item, second)
        gains = (AnswerGain(f"the next, {second}", *board.compute_difference(first.item, second)),)
    explanation = (
        f"It is statistically tied with {join_names(tied, NAMED)}."
        if tied
        else f"It leads significantly over all {len(board.rows) - 1:,} others."
    )
    return AnswerCard(
        winner, "", "First place",
        "rating", first.score, gains, p,
        "corrected for all pairs of items (Holm)", "low" if tied else judge_certainty(p, [1.0]), explanation,
        f"{board.votes:,.10g} votes on {len(board.rows):,} items", str(first.item) if str(first.item) != winner else "",
        first.low, first.high, 0,
    )  # fmt: skip
