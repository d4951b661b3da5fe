"""Labeled queries for tests of methods that learn: three experts of known worth."""

from __future__ import annotations

import numpy as np

from podium import Labels, Preferences

ITEMS = "abcdefgh"


def lesson(grade, queries=30, seed=0, unlisted="unknown"):
    """`good` follows the truth with some noise, `noise` does not know it, `reversed` turns `good` round.

    `grade` gives the label of the item at a true place from 0, or None to leave it out.
    """
    random = np.random.default_rng(seed)
    lists, labels = {}, {}
    for q in range(queries):
        truth = random.permutation(len(ITEMS))
        spoilt = np.argsort(np.argsort(truth) + random.normal(0, 1.5, len(ITEMS)))
        orders = {"good": spoilt, "noise": random.permutation(len(ITEMS)), "reversed": spoilt[::-1]}
        lists[q] = {e: [ITEMS[i] for i in order[: 8 if e != "noise" else 5]] for e, order in orders.items()}
        labels[q] = {ITEMS[i]: grade(p) for p, i in enumerate(truth) if grade(p) is not None}
    return Preferences.from_lists(lists, unlisted=unlisted), Labels.from_dict(labels)
