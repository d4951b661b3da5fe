"""An additive model of items and lists: the mean value of an item, corrected for the other items of its lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels import segments
from podium.kernels.dispatch import F8, I4, I8
from podium.kernels.expert_agreement import pull_to_mean

__all__ = ["ListEffects", "ListValues", "fit_list_effects", "sum_by_item"]

QUALITY_STEPS = 2  # of quality and effects in turn; the third changes nothing
MOST_STEPS = 20  # of item effects and list levels in turn
TOLERANCE = 1e-5  # of the levels, as a share of the spread of the values
LEAST_SIGNAL = 1e-3  # variance of the item effects, as a share of the noise
LEAST_DAMPING = 1e-3  # so that an item of one list has an effect that the list does not decide alone


class ListValues(NamedTuple):
    """Lists by query: the expert of every list, and the item and the value of every row."""

    query_starts: I8
    slot_starts: I8  # slots of query q: slot_starts[q] .. slot_starts[q + 1]
    starts: I8
    expert: I4
    item: I4
    value: F8


class ListEffects(NamedTuple):
    """The fitted model: a value is about the level of its list plus the effect of its item."""

    item: F8  # by slot, around 0
    level: F8  # by list
    divisor: F8  # by slot: the weights of the lists with the item, and those that damp its effect
    quality: F8  # by expert
    weight: F8  # by expert


def fit_list_effects(rows: ListValues, given: F8) -> ListEffects:
    """Effects of items by damped least squares, and the experts' weights from how well their lists agree with them.

    The effect of an item is the weighted mean of what its values exceed the levels of their lists by, damped by as
    many experts as the noise of a value is of the variance between items; the level of a list is the mean of what its
    values exceed the effects of its items by. The quality of an expert is the correlation, within its lists, of its
    values with the effects that the other experts give; its weight is that times the `given` one.
    """
    slots = int(rows.slot_starts[-1])
    list_of_row = np.repeat(np.arange(len(rows.expert)), np.diff(rows.starts))
    query_of_slot = np.repeat(np.arange(len(rows.slot_starts) - 1), np.diff(rows.slot_starts))
    listed = (np.bincount(rows.item, minlength=slots) > 0).astype(np.float64)
    items = np.maximum(np.bincount(query_of_slot, listed), 1.0)
    mean = segments.compute_list_statistics(rows.starts, rows.value).mean
    centered = rows.value - mean[list_of_row]
    damping = _estimate_damping(rows.item, centered, slots)
    tolerance = TOLERANCE * float(np.sqrt(np.mean(centered**2))) if len(centered) else 0.0
    given = given / max(float(given.max(initial=0.0)), 1e-300)
    weight, quality, level = given, np.ones(len(given)), mean
    for step in range(QUALITY_STEPS + 1):
        by_list = weight[rows.expert]
        divisor = damping * float(weight[weight > 0].mean()) + sum_by_item(
            rows, None, by_list, by_list, slots
        )
        for _ in range(MOST_STEPS):
            last, effect = level, sum_by_item(rows, rows.value, -by_list * level, by_list, slots) / divisor
            # the effects of a solution have the mean 0 in every query, which the steps alone reach slowly
            effect = effect - listed * (np.bincount(query_of_slot, effect) / items)[query_of_slot]
            level = mean - segments.compute_list_statistics(rows.starts, effect[rows.item]).mean
            if np.abs(level - last).max(initial=0.0) <= tolerance:
                break
        effect = sum_by_item(rows, rows.value, -by_list * level, by_list, slots) / divisor
        if step == QUALITY_STEPS:
            break
        own = by_list[list_of_row]
        rest = effect[rows.item] * divisor[rows.item] - own * (rows.value - level[list_of_row])
        quality = _measure_quality(rows, list_of_row, centered, rest / (divisor[rows.item] - own), len(given))
        trusted = given * np.maximum(quality, 0.0)
        weight = trusted if (trusted > 0).any() else given
    return ListEffects(effect, level, divisor, quality, weight)


def sum_by_item(rows: ListValues, value: F8 | None, base: F8, slope: F8, slots: int) -> F8:
    """By slot, the sum over its rows of base + slope x value; both are by list. Without values, of the base alone."""
    return segments.sum_affine(rows.query_starts, rows.starts, rows.item, value, base, slope, slots)


def _estimate_damping(item: I4, centered: F8, slots: int) -> float:
    """The variance of an item's values in units of the variance between items, by analysis of variance."""
    count = np.bincount(item, minlength=slots)
    mean = np.bincount(item, centered, slots) / np.maximum(count, 1)
    listed, rows = int((count > 0).sum()), len(item)
    squares = float(((centered - mean[item]) ** 2).sum())
    if rows <= listed or squares <= 0:  # no item has two values, or all agree
        return 1.0
    noise = squares / (rows - listed)
    signal = (float(count @ mean**2) - listed * noise) / rows
    return max(noise / max(signal, LEAST_SIGNAL * noise), LEAST_DAMPING)


def _measure_quality(rows: ListValues, list_of_row: I8, centered: F8, others: F8, experts: int) -> F8:
    """By expert the correlation of its values with what others give, pulled to the mean by its sampling error."""
    others = others - segments.compute_list_statistics(rows.starts, others).mean[list_of_row]
    by = rows.expert[list_of_row]
    product, own, other = (
        np.bincount(by, terms, experts) for terms in (centered * others, centered**2, others**2)
    )
    quality = np.where(own * other > 0, product / np.sqrt(np.maximum(own * other, 1e-300)), 0.0)
    degrees = np.bincount(by, minlength=experts) - np.bincount(rows.expert, minlength=experts)
    return pull_to_mean(quality, 1.0 / np.maximum(degrees, 1.0), degrees.astype(np.float64))
