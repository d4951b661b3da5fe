"""Rules that turn the answers of a panel into one answer per question, and the choice among them on gold.

Every rule gets the votes on all questions and the gold of some of them, and returns a score per question: the
first item is preferred above 1/2, and the distance from 1/2 orders the answers by confidence. A rule is
measured on gold that it did not see (out of fold). Picking the best judge is a rule like the others and is
measured in the same way: the judge that is best on the training folds answers the held-out fold.

The choice itself is measured once more by nesting: for each fold the choice is made from rules that were
fitted and measured without it. Fits without two folds serve both as outer folds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from podium.analysis.judges.panel import JudgePanel
from podium.core.errors import ParameterError, capture_warnings
from podium.core.params import suggest_names
from podium.data.ids import Id
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.distributions import logistic
from podium.methods.base import make

__all__ = [
    "BEST_JUDGE",
    "RULES",
    "MeasuredRules",
    "NestedChoice",
    "apply_rule",
    "choose_rule",
    "estimate_nested_choice",
    "measure_rules",
    "name_rule",
    "pick_best_judge",
    "resolve_rules",
    "score_answers",
    "split_folds",
]

FOLDS = 5
LEAD = 1.645  # standard errors: a one-sided test at 5 %
BEST_JUDGE = "best judge"
EVEN = 1e-9  # scores closer to 1/2 are no answer
# panel, gold, questions whose gold may be used, questions whose scores are wanted -> scores by question
PanelRule = Callable[[JudgePanel, F8, B1, B1], F8]


def pick_best_judge(panel: JudgePanel, gold: F8, known: B1) -> int:
    """The judge with the most right answers on the known gold; a split or missing answer counts half."""
    right = 1 - np.abs(np.nan_to_num(panel.answers[:, known], nan=0.5) - gold[known])
    return int(right.sum(axis=1).argmax())


def _follow_best_judge(panel: JudgePanel, gold: F8, known: B1, _wanted: B1) -> F8:
    """The best judge's answers; where it has none, the mean of all judges, with less confidence.

    A judge's own answers are equally certain, so the share of the panel on its side orders them.
    """
    own = np.nan_to_num(panel.answers[pick_best_judge(panel, gold, known)], nan=0.5)
    mean = panel.mean_answer
    return np.asarray(0.5 + np.sign(own - 0.5) * 0.375 + (mean - 0.5) * 0.25, np.float64)


def _follow_model(name: str) -> PanelRule:
    """A crowd model that learns the judges' quality from the gold and from all votes."""

    def compute_scores(panel: JudgePanel, gold: F8, known: B1, _wanted: B1) -> F8:
        model, votes = make(name), panel.preferences
        scores = model.fit(votes, panel.to_labels(gold, known)).aggregate(votes).scores
        return np.asarray(logistic(scores[::2] - scores[1::2]), np.float64)

    return compute_scores


def _follow_learner(name: str) -> PanelRule:
    """A method that is trained on the questions with gold alone, and scores each question by itself."""

    def compute_scores(panel: JudgePanel, gold: F8, known: B1, wanted: B1) -> F8:
        votes, scores = panel.preferences, np.full(2 * len(panel), 0.5)
        # whether training pays is decided here, out of fold
        with capture_warnings():
            model = make(name).fit(votes.select_codes(np.flatnonzero(known)), panel.to_labels(gold, known))
            some = model.aggregate(votes.select_codes(np.flatnonzero(wanted)))
        scores[np.repeat(wanted, 2)] = some.scores
        return np.asarray(logistic(scores[::2] - scores[1::2]), np.float64)

    return compute_scores


# in the order in which equal results are preferred
RULES: dict[str, PanelRule] = {
    BEST_JUDGE: _follow_best_judge,
    "majority": lambda panel, _gold, _known, _wanted: panel.mean_answer,
    "dawid_skene": _follow_model("dawid_skene"),
    "crowd_bt": _follow_model("crowd_bt"),
    "crf": _follow_learner("crf"),
    "fused": _follow_learner("fused"),
}


def resolve_rules(names: Sequence[str] | None) -> tuple[str, ...]:
    """The rules to choose from, all by default; the best judge is always the first of them."""
    for name in names or ():
        if name not in RULES:
            raise ParameterError(f"there is no rule {name!r}; {suggest_names(name, RULES)}")
    return tuple(name for name in RULES if names is None or name in names or name == BEST_JUDGE)


def score_answers(scores: F8, gold: F8) -> F8:
    """1 for a right answer, 0 for a wrong one, 1/2 for none; NaN without gold."""
    side = np.where(np.abs(scores - 0.5) <= EVEN, 0.5, (scores > 0.5) * 1.0)
    return np.asarray(1 - np.abs(side - gold), np.float64)


def split_folds(known: B1, folds: int = FOLDS, seed: int = 0) -> I8:
    """A random fold per known question, -1 for the others; sizes differ by at most one."""
    where = np.flatnonzero(known)
    fold = np.full(len(known), -1)
    fold[np.random.default_rng(seed).permutation(where)] = np.arange(len(where)) % folds
    return fold


class MeasuredRules(NamedTuple):
    """Out-of-fold results: rules x gold questions, 1 for right, 0 for wrong, 1/2 for no answer."""

    names: tuple[str, ...]
    right: F8
    fold: I8  # of each gold question

    @property
    def shares(self) -> F8:
        """Share of right answers per rule."""
        return np.asarray(self.right.mean(axis=1), np.float64)


def measure_rules(
    panel: JudgePanel, gold: F8, known: B1, names: Sequence[str], *, folds: int = FOLDS, seed: int = 0
) -> MeasuredRules:
    """Measure every rule on gold that it did not see."""
    fold = split_folds(known, folds, seed)
    right = np.empty((len(names), len(gold)))
    for row, name in enumerate(names):
        for k in range(folds):
            held = fold == k
            if held.any():
                right[row, held] = score_answers(RULES[name](panel, gold, known & ~held, held), gold)[held]
    return MeasuredRules(tuple(names), right[:, known], fold[known])


def choose_rule(right: F8) -> int:
    """The row of the chosen rule, from right answers of rules x questions; the first row is the best judge.

    Another rule replaces it only with a lead of LEAD standard errors: the largest of many noisy shares is
    often that of a worse rule, and one judge is cheaper than a panel.
    """
    lead = right - right[0]
    error = lead.std(axis=1, ddof=1) / np.sqrt(lead.shape[1])
    shares = np.where(lead.mean(axis=1) > LEAD * error, right.mean(axis=1), -1.0)
    shares[0] = right[0].mean()
    return int((shares > shares.max() - 1e-12).argmax())


class NestedChoice(NamedTuple):
    """Results on gold that neither fit nor choice saw, by gold question."""

    chosen: F8  # of the rule that the other folds choose
    panel: F8  # of the rule that they choose among those that use several judges
    best_judge: F8  # of the judge that they pick


def estimate_nested_choice(panel: JudgePanel, gold: F8, known: B1, measured: MeasuredRules) -> NestedChoice:
    """Choose on all folds but one, and measure the choice on that one, for every fold of `measured`."""
    names = measured.names
    fold, outer = np.full(len(gold), -1), np.full((len(names), len(gold)), np.nan)
    fold[known], outer[:, known] = measured.fold, measured.right
    used = np.unique(measured.fold).tolist()
    # inner[a]: results on all folds but a, of rules that saw neither a nor the fold they are measured on
    inner = np.full((max(used) + 1, len(names), len(gold)), np.nan)
    for row, name in enumerate(names):
        for a, b in itertools.combinations(used, 2):
            held = (fold == a) | (fold == b)
            right = score_answers(RULES[name](panel, gold, known & ~held, held), gold)
            inner[a, row, fold == b] = right[fold == b]
            inner[b, row, fold == a] = right[fold == a]
    chosen, team, best = (np.full(len(gold), np.nan) for _ in range(3))
    for a in used:
        held, others = fold == a, known & (fold != a)
        results = inner[a][:, others]
        chosen[held] = outer[choose_rule(results)][held]
        team[held] = outer[1 + int(results[1:].mean(axis=1).argmax())][held] if len(names) > 1 else np.nan
        best[held] = outer[0][held]
    return NestedChoice(chosen[known], team[known], best[known])


def apply_rule(name: str, panel: JudgePanel, gold: F8, known: B1) -> F8:
    """Scores of all questions by a rule that may use the known gold."""
    return RULES[name](panel, gold, known, np.ones(len(gold), np.bool_))


def name_rule(name: str, panel: JudgePanel, gold: F8, known: B1) -> str:
    """The rule in words: the best judge with its name."""
    if name != BEST_JUDGE:
        return name
    judge: Id = panel.judges[pick_best_judge(panel, gold, known)]
    return f"{BEST_JUDGE} ({judge})"
