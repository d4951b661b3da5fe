"""Panels of judges with known truth: independent ones, a bias that several share, one good among bad."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from podium.core.errors import ParameterError
from podium.core.params import suggest_names
from podium.data.features import Features
from podium.data.preferences import Preferences
from podium.kernels.dispatch import B1, F8

__all__ = ["KINDS", "SimulatedPanel", "simulate_panel"]

# kind -> accuracy of each judge, and how many of the first judges follow the shared bias
KINDS: dict[str, tuple[tuple[float, ...], int]] = {
    "independent": ((0.72, 0.75, 0.75, 0.78, 0.78), 0),
    "shared bias": ((0.85, 0.85, 0.85, 0.85, 0.85, 0.75, 0.75, 0.75), 5),
    "one good judge": ((0.9, 0.55, 0.55, 0.55, 0.55, 0.55, 0.55), 0),
}
SHARED = 0.4  # share of the questions on which the biased judges prefer the longer item, right or wrong
EASY = 0.12  # with shifted gold: judges are so much better on gold questions, and as much worse on the others


@dataclass(frozen=True, eq=False)
class SimulatedPanel:
    """Votes on questions "q0", "q1", ... between items "x" and "y", in both orders, and what is true."""

    preferences: Preferences
    gold: Preferences  # the truth on some questions
    features: Features  # the length of every item
    truth: B1  # by question: whether "x" is better
    has_gold: B1  # by question

    def write_files(self, folder: str | os.PathLike[str]) -> None:
        """Write votes.csv (item_a was shown first), gold.csv and lengths.csv."""
        votes, index = self.preferences.comparisons, self.preferences.index
        lines = ["query,judge,item_a,item_b,winner"]
        assert votes.side is not None
        columns = votes.query_of_row, votes.expert, votes.winner, votes.loser, votes.side
        for query, judge, won, lost, side in zip(*(c.tolist() for c in columns), strict=True):
            shown = (won, lost) if side > 0 else (lost, won)
            names = [str(index.items[slot]) for slot in (*shown, won)]
            lines.append(",".join([str(index.queries[query]), str(self.preferences.experts[judge]), *names]))
        gold, people = ["query,item_a,item_b,winner"], self.gold.comparisons
        for query, won in zip(people.query_of_row.tolist(), people.winner.tolist(), strict=True):
            gold.append(f"{self.gold.index.queries[query]},x,y,{self.gold.index.items[won]}")
        sizes, at = ["query,item,length"], self.features.index
        for slot, length in enumerate(self.features.values[:, 0].tolist()):
            sizes.append(f"{at.queries[int(at.query_of_slot[slot])]},{at.items[slot]},{length:.0f}")
        for name, text in (("votes.csv", lines), ("gold.csv", gold), ("lengths.csv", sizes)):
            Path(folder, name).write_text("\n".join(text) + "\n")


def simulate_panel(
    kind: str = "independent",
    *,
    questions: int = 400,
    gold: int = 100,
    shifted: bool = False,
    position_bias: float = 0.05,
    seed: int = 0,
) -> SimulatedPanel:
    """Simulate a panel of one of the KINDS; `shifted` gold is easier than the other questions.

    With probability `position_bias` a judge prefers the item shown first, whatever it is.
    """
    if kind not in KINDS:
        raise ParameterError(f"there is no kind of panel {kind!r}; {suggest_names(kind, KINDS)}")
    accuracy, biased = np.array(KINDS[kind][0]), KINDS[kind][1]
    rng = np.random.default_rng(seed)
    judges = len(accuracy)
    truth = rng.random(questions) < 0.5
    length = rng.lognormal(5, 0.4, (questions, 2))
    has_gold = np.zeros(questions, np.bool_)
    has_gold[rng.permutation(questions)[:gold]] = True
    chance: F8 = accuracy[:, None] + np.zeros(questions)
    if shifted:
        chance = np.clip(chance + np.where(has_gold, EASY, -EASY), 0.05, 0.95)
    right = rng.random((judges, questions)) < chance
    answer = right == truth
    tempted = rng.random(questions) < SHARED
    answer[:biased, tempted] = (length[:, 0] > length[:, 1])[tempted]
    # every question is asked in both orders; a position effect overrides the answer
    rows = []
    for second_first in (False, True):
        swayed = rng.random((judges, questions)) < position_bias
        rows.append(np.where(swayed, not second_first, answer))
    for_x = np.stack(rows, axis=2).reshape(-1)
    judge = np.repeat(np.arange(judges), 2 * questions)
    question = np.tile(np.repeat(np.arange(questions), 2), judges)
    x_first = np.tile([True, False], judges * questions)
    names = [f"judge {k + 1}" for k in range(judges)]
    queries = [f"q{k}" for k in range(questions)]
    votes = Preferences.from_comparisons(
        [queries[k] for k in question.tolist()],
        [names[k] for k in judge.tolist()],
        np.where(for_x, "x", "y").tolist(),
        np.where(for_x, "y", "x").tolist(),
        side=np.where(for_x == x_first, 1, -1),
    )
    asked = np.flatnonzero(has_gold).tolist()
    best = ["x" if truth[k] else "y" for k in asked]
    other = ["y" if truth[k] else "x" for k in asked]
    people = Preferences.from_comparisons([queries[k] for k in asked], ["people"] * len(asked), best, other)
    features = Features.from_rows(
        [q for q in queries for _ in "xy"], ["x", "y"] * questions, length.reshape(-1, 1), ["length"]
    )
    return SimulatedPanel(votes, people, features, truth, has_gold)
