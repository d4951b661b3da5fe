"""Evidence about pairs of items that holds at every look: e-processes and confidence sequences.

A vote on items a and b is an outcome between 0 and 1 whose mean, given everything before it, is the probability
that a wins. Nothing else is assumed: which pair is asked next may depend on all earlier votes, and one may look
after every vote and stop at any time.

- The e-value for "a beats b" is the mean likelihood ratio of advantages against no advantage. If a does not
  beat b, the probability that it ever exceeds c is at most 1 / c (Ville's inequality). Ties leave it unchanged.
- The e-value against "b is the best" is one half of the mean of the e-values for "a beats b" over all a, plus one
  half of the same ratio for all votes on b together. If b is the best, all of these are evidence for a falsehood,
  so their mean is an e-value too. Items with an e-value below 1 / (1 - level) *may be the best*; the true best
  item ever leaves them with probability at most 1 - level, however many items there are.
- A claim that a is above b from direct votes needs an e-value of n (n - 1) / (1 - level) for n items (Bonferroni
  over all ordered pairs), so that all claims hold together. Claims are closed under transitivity.
- Scores of a choice model pool all votes, and separate many items with far fewer. Their differences, divided by
  their standard errors, are compared with the boundary of a normal mixture (Robbins) instead of a quantile. This
  holds in large samples and if the model does.
- The confidence sequence of a win rate contains all rates against which a Beta(1/2, 1/2) mixture has a likelihood
  ratio below 1 / (1 - level); a tie is half a win.
"""

from __future__ import annotations

import numpy as np

from podium.kernels.dispatch import B1, F8
from podium.kernels.distributions import log_gamma

__all__ = [
    "PairEvidence",
    "bound_win_rate",
    "close_claims",
    "compute_log_evidence",
    "mixture_critical_value",
]

ADVANTAGES = 0.08 * 1.7 ** np.arange(8)  # log odds of the winner: probabilities 0.52 to 0.96
WINS = np.log(2 / (1 + np.exp(-ADVANTAGES)))  # log likelihood ratio of a win, against no advantage
LOSSES = np.log(2 / (1 + np.exp(ADVANTAGES)))
MIXTURE_INFORMATION = 25.0  # one over the variance of the mixture: 100 direct votes on equal items
HALVINGS = 60


def compute_log_evidence(won: F8, lost: F8) -> F8:
    """Logarithm of the e-value for an advantage, by numbers of wins and losses of any shape.

    >>> np.round(compute_log_evidence(np.array([0.0, 60.0]), np.array([0.0, 40.0])), 2).tolist()
    [0.0, 0.97]
    """
    ratios = np.multiply.outer(won, WINS) + np.multiply.outer(lost, LOSSES)
    return _log_mean(ratios, axis=-1)


def mixture_critical_value(information: F8, error: float) -> F8:
    """Standard errors that a difference exceeds at some look with probability at most `error`, if there is none.

    `information` is one over the variance of the difference. The boundary is that of a normal mixture, narrowest
    where the information of some thousand direct votes is there.

    >>> np.round(mixture_critical_value(np.array([25.0, 400.0, 1e6]), 0.05), 2).tolist()
    [3.66, 3.06, 4.07]
    """
    ratio = information / MIXTURE_INFORMATION
    with np.errstate(divide="ignore"):
        return np.asarray(np.sqrt((1 + 1 / ratio) * (np.log1p(ratio) - 2 * np.log(error))), np.float64)


def _log_mean(logs: F8, axis: int) -> F8:
    top = logs.max(axis=axis, keepdims=True)
    mean = np.exp(logs - np.where(np.isfinite(top), top, 0.0)).mean(axis=axis)
    with np.errstate(divide="ignore"):
        return np.asarray(np.squeeze(top, axis=axis) + np.log(mean), np.float64)


class PairEvidence:
    """E-values of all pairs of `size` items, updated vote by vote.

    >>> evidence = PairEvidence(3)
    >>> for winner, loser in [(0, 1), (0, 2), (1, 2)] * 30:
    ...     evidence.add(winner, loser)
    >>> evidence.find_contenders().tolist()
    [True, False, False]
    """

    def __init__(self, size: int) -> None:
        self.won: F8 = np.zeros((size, size))  # of the row over the column
        self.tied: F8 = np.zeros((size, size))
        self._pairs = np.zeros((size, size))  # log e-value that the column beats the row; 0 on the diagonal
        self._best = np.zeros(size)  # log e-value against being the best
        self._losses, self._wins = np.zeros(size), np.zeros(size)

    @classmethod
    def from_counts(cls, won: F8, tied: F8) -> PairEvidence:
        """The evidence of numbers of wins, row over column, and of ties."""
        evidence = cls(len(won))
        evidence.won, evidence.tied = won.astype(np.float64), tied.astype(np.float64)
        evidence._pairs = compute_log_evidence(won.T, won)
        evidence._wins, evidence._losses = won.sum(axis=1), won.sum(axis=0)
        evidence._best = evidence.combine(
            evidence._pairs, compute_log_evidence(evidence._losses, evidence._wins)
        )
        return evidence

    def __len__(self) -> int:
        return len(self.won)

    def add(self, winner: int, loser: int, *, tie: bool = False) -> None:
        """Add one vote."""
        if tie:
            self.tied[winner, loser] += 1
            self.tied[loser, winner] += 1
            return
        self.won[winner, loser] += 1
        self._wins[winner] += 1
        self._losses[loser] += 1
        both = np.array([winner, loser])
        other = both[::-1]
        self._pairs[both, other] = compute_log_evidence(self.won[other, both], self.won[both, other])
        pooled = compute_log_evidence(self._losses[both], self._wins[both])
        self._best[both] = self.combine(self._pairs[both], pooled, both)

    def combine(self, pairs: F8, pooled: F8, rows: F8 | None = None) -> F8:
        """Log e-values against being the best, from rows of log e-values of pairs and of all votes of an item."""
        own = np.arange(len(pairs)) if rows is None else rows
        logs = pairs.copy()
        logs[np.arange(len(pairs)), own] = -np.inf
        others = len(self) - 1
        mean = _log_mean(logs, axis=1) + np.log((others + 1) / max(others, 1))
        return np.asarray(np.logaddexp(mean, pooled) - np.log(2), np.float64)

    @property
    def against_best(self) -> F8:
        """Log e-value against each item's being the best."""
        return self._best

    @property
    def below(self) -> F8:
        """Log e-values that the item of the column beats that of the row."""
        return self._pairs

    def find_contenders(self, level: float = 0.95) -> B1:
        """The items that may be the best."""
        return np.asarray(self._best < -np.log(1 - level))

    def find_claims(self, level: float = 0.95) -> B1:
        """Whether the item of the row is above that of the column; all claims hold together."""
        n = len(self)
        claims = np.log(n * max(n - 1, 1) / (1 - level)) <= self._pairs.T
        return close_claims(claims & ~np.eye(n, dtype=np.bool_))


def close_claims(claims: B1) -> B1:
    """Claims with those that follow by transitivity; contradictions (a above b above a) are dropped."""
    closed = claims
    while True:
        longer = closed | ((closed.astype(np.float32) @ closed.astype(np.float32)) > 0)
        if (longer == closed).all():
            return np.asarray(closed & ~closed.T)
        closed = longer


def bound_win_rate(won: F8, lost: F8, level: float = 0.95) -> tuple[F8, F8]:
    """Ends of the confidence sequence of the probability of a win; `won` and `lost` include half of the ties.

    >>> low, high = bound_win_rate(np.array([60.0]), np.array([40.0]))
    >>> round(float(low[0]), 2), round(float(high[0]), 2)
    (0.43, 0.75)
    """
    won, lost = np.asarray(won, np.float64), np.asarray(lost, np.float64)
    total = won + lost
    mixture = log_gamma(won + 0.5) + log_gamma(lost + 0.5) - log_gamma(total + 1) - np.log(np.pi)
    needed = mixture + np.log(1 - level)  # log likelihood below which a rate is excluded
    mean = np.divide(won, total, out=np.full_like(total, 0.5), where=total > 0)

    def find_end(outside: float) -> F8:
        out, inside = np.full_like(mean, outside), mean.copy()
        for _ in range(HALVINGS):
            middle = (out + inside) / 2
            with np.errstate(divide="ignore", invalid="ignore"):
                likely = np.where(won > 0, won * np.log(middle), 0) + np.where(
                    lost > 0, lost * np.log1p(-middle), 0
                )
            kept = likely > needed
            inside, out = np.where(kept, middle, inside), np.where(kept, out, middle)
        return out

    return find_end(0.0), find_end(1.0)
