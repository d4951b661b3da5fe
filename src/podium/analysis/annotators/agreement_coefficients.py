"""Chance-corrected agreement of all annotators: Krippendorff's alpha, Fleiss' and Cohen's kappa.

A unit is an item that annotators rate on one scale, or a pair of items that they vote on; an annotator gives a
unit one label. On pairs the labels are "first", "second" and "tie"; which item is first is arbitrary, so that
chance agreement takes both as equally frequent. Intervals are over units: they hold for other units judged by
the same annotators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from podium.analysis.annotators.crowd_judgements import CrowdJudgements
from podium.kernels.dispatch import F8, I8
from podium.kernels.grouping import number_rows, sum_by_group

__all__ = ["AgreementCoefficient", "UnitLabels", "build_unit_labels", "compute_coefficients"]

ROUNDS, SEED = 500, 0  # of the bootstrap
BLOCK = 2000  # kinds of units that are resampled at once
MOST_COMPARED = (
    2e7  # cells, over units and pairs of annotators, up to which every two annotators are compared
)


@dataclass(frozen=True)
class AgreementCoefficient:
    """A coefficient and its bootstrap interval: 1 is perfect agreement, 0 that of chance."""

    name: str  # "alpha_nominal", "alpha_ordinal", "alpha_interval", "fleiss_kappa", "cohen_kappa"
    value: float
    low: float
    high: float
    units: int  # with two or more labels


class UnitLabels(NamedTuple):
    """The label that annotators gave to units, one row each."""

    unit: I8
    annotator: I8
    label: I8
    values: F8  # by label
    mirrored: bool  # labels 0 and 1 are exchanged if a unit is turned round


def build_unit_labels(crowd: CrowdJudgements) -> UnitLabels | None:
    """Ratings on a shared scale, or else votes on pairs; None without either."""
    lists, votes = crowd.preferences.lists, crowd.preferences.comparisons
    if crowd.grades is not None and not len(votes):
        assert lists.score is not None
        label = np.searchsorted(crowd.grades, lists.score)
        return UnitLabels(lists.item.astype(np.int64), crowd.annotator_of_row, label, crowd.grades, False)
    if not len(votes) or lists.rows:
        return None
    pair, sign = crowd.vote_pairs
    (unit, annotator), row = number_rows(pair, votes.expert)
    # of several votes on a pair the majority is the annotator's label
    balance = sum_by_group(row, crowd.win_weights * sign, len(unit))
    label = np.where(balance > 0, 0, np.where(balance < 0, 1, 2))
    return UnitLabels(unit.astype(np.int64), annotator.astype(np.int64), label, np.arange(3.0), True)


def compute_coefficients(given: UnitLabels | None, level: float = 0.95) -> tuple[AgreementCoefficient, ...]:
    """The coefficients that the labels determine, with intervals at `level`."""
    if given is None:
        return ()
    # number of annotators by unit and label; units with one label are no evidence of agreement
    shape = int(given.unit.max(initial=-1)) + 1, len(given.values)
    table = np.bincount(given.unit * shape[1] + given.label, minlength=shape[0] * shape[1]).reshape(shape)
    counts = np.asarray(table[table.sum(axis=1) >= 2], np.float64)
    units = len(counts)
    if units == 0:
        return ()
    # units with the same labels are exchangeable: they are resampled together, in an order of their own
    counts, number = np.unique(counts, axis=0, return_counts=True)
    coincidences, agreed, drawn = _resample_units(counts, number)
    totals = coincidences.sum(axis=2)
    if given.mirrored:
        totals[:, :2] = totals[:, :2].mean(axis=1, keepdims=True)
    columns = {"alpha_nominal": _compute_alpha(coincidences, totals, 1.0 - np.eye(counts.shape[1]))}
    if not given.mirrored:
        # the distance of two levels is the number of labels between them, those of the levels themselves half
        middle = np.cumsum(totals, axis=1) - totals / 2
        rank_gaps = (middle[:, :, None] - middle[:, None, :]) ** 2
        columns["alpha_ordinal"] = _compute_alpha(coincidences, totals, rank_gaps)
        gaps = (given.values[:, None] - given.values) ** 2
        columns["alpha_interval"] = _compute_alpha(coincidences, totals, gaps)
    chance = _divide((totals**2).sum(axis=1), totals.sum(axis=1) ** 2)
    columns["fleiss_kappa"] = _divide(_divide(agreed, drawn) - chance, 1 - chance)
    cohen = _compute_cohen(given)
    if cohen is not None:
        columns["cohen_kappa"] = cohen
    coefficients = []
    for name, values in columns.items():
        # the first value is the estimate, the others are resamples
        known = values[1:][np.isfinite(values[1:])]
        if len(known) and np.isfinite(values[0]):
            low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
            coefficients.append(AgreementCoefficient(name, float(values[0]), float(low), float(high), units))
    return tuple(coefficients)


def _iterate_resamples(number: I8) -> Iterator[tuple[slice, F8]]:
    """Blocks of kinds of units, and how many of each a round has: all in the first, Poisson in the others."""
    random = np.random.default_rng(SEED)
    for begin in range(0, len(number), BLOCK):
        block = slice(begin, min(begin + BLOCK, len(number)))
        times = random.poisson(number[block], (ROUNDS + 1, block.stop - begin)).astype(np.float64)
        times[0] = number[block]
        yield block, times


def _resample_units(counts: F8, number: I8) -> tuple[F8, F8, F8]:
    """By round: coincidences of labels, the sum of the units' agreement, and the number of units."""
    labels = counts.shape[1]
    coincidences = np.zeros((ROUNDS + 1, labels * labels))
    agreed, drawn = np.zeros(ROUNDS + 1), np.zeros(ROUNDS + 1)
    for block, times in _iterate_resamples(number):
        here = counts[block]
        size = here.sum(axis=1)
        pairs = here[:, :, None] * here[:, None, :]
        pairs[:, np.arange(labels), np.arange(labels)] -= here
        coincidences += times @ (pairs / (size - 1)[:, None, None]).reshape(len(here), -1)
        agreed += times @ (np.einsum("ull->u", pairs) / (size * (size - 1)))
        drawn += times.sum(axis=1)
    return coincidences.reshape(-1, labels, labels), agreed, drawn


def _divide(part: F8, whole: F8) -> F8:
    return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0), np.float64)


def _compute_alpha(coincidences: F8, totals: F8, distance: F8) -> F8:
    """1 minus observed over expected disagreement, by round."""
    number = totals.sum(axis=1)
    distance = np.broadcast_to(distance, coincidences.shape)
    observed = (coincidences * distance).sum(axis=(1, 2))
    expected = np.einsum("rl,rlk,rk->r", totals, distance, totals)
    return np.asarray(1.0 - _divide(observed * (number - 1), expected), np.float64)


def _compute_cohen(given: UnitLabels) -> F8 | None:
    """Cohen's kappa by round, averaged over all pairs of annotators who share units; None for too many."""
    who, annotator = np.unique(given.annotator, return_inverse=True)
    labels, pairs = len(given.values), len(who) * (len(who) - 1) // 2
    table = np.full((len(who), int(given.unit.max()) + 1), -1)
    table[annotator, given.unit] = given.label
    table, number = np.unique(table, axis=1, return_counts=True)
    if not pairs or pairs * len(number) * labels**2 > MOST_COMPARED:
        return None
    first, second = np.triu_indices(len(who), 1)
    cells = np.zeros((ROUNDS + 1, pairs * labels**2))
    for block, times in _iterate_resamples(number):
        a, b = table[first, block], table[second, block]
        pair, unit = np.nonzero((a >= 0) & (b >= 0))
        marks = np.zeros((times.shape[1], pairs * labels**2))
        marks[unit, (pair * labels + a[pair, unit]) * labels + b[pair, unit]] = 1.0
        cells += times @ marks
    both = cells.reshape(-1, labels, labels)
    if given.mirrored:
        both = (both + both[:, [1, 0, 2]][:, :, [1, 0, 2]]) / 2
    shared = both.sum(axis=(1, 2))
    chance = _divide(np.einsum("rl,rl->r", both.sum(axis=2), both.sum(axis=1)), shared**2)
    kappa = _divide(_divide(np.einsum("rll->r", both), shared) - chance, 1 - chance).reshape(-1, pairs)
    known = np.isfinite(kappa)
    return _divide(np.where(known, kappa, 0.0).sum(axis=1), known.sum(axis=1).astype(np.float64))
