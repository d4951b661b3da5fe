"""The distribution of an item's rank, given its win probability in each contest, and expectations under it.

The number of items above an item is a sum of independent coin flips, one per contest: Poisson-binomial.

`compute_rank_distributions` gives whole distributions. `compute_excess_discount` gives only the expected
discount at the rank, minus that with even contests, and never builds a distribution over all ranks. With a
win probability of 1/2 + e in a contest and x standing for one item above, every contest is the factor (1 + x)
/ 2 + e (1 - x). So the product over c contests, minus that of c even ones, is (1 - x) s(x), where one more
contest turns s into s (p + q x) + e ((1 + x) / 2)^t; the excess is the sum over r of s_r times the mean drop
of the discount after rank r + (even contests won by others). All terms have the sign of their e: nothing
cancels, so equal items stay equal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium._core import poisson_binomial as core
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8, run_in_threads

__all__ = [
    "DIRECT",
    "DiscountDrops",
    "OpponentTable",
    "PowerSum",
    "approximate_log_discount",
    "compute_discount_drops",
    "compute_excess_discount",
    "compute_power_excess",
    "compute_rank_distributions",
    "convolve_by_fft",
    "convolve_directly",
]

# contests up to which direct convolution is fastest for a distribution (see benchmarks/crowd.py)
DIRECT = 1_000
CHUNK = 1 << 22  # cells of a table held at once
LEAF = 512  # maximum contests in a leaf of the tree: direct convolution there, Fourier transforms above


# -- whole distributions -----------------------------------------------------------------------------------


def compute_rank_distributions(win: F8) -> F8:
    """P(rank = r), r from 0, for every row of win probabilities against its opponents.

    By direct convolution for up to `DIRECT` contests, otherwise by a tree of Fourier transforms, exact to
    1e-16 in absolute terms (direct convolution: in relative terms).

    >>> compute_rank_distributions(np.array([[0.5, 0.5], [1.0, 0.25]]))
    array([[0.25, 0.5 , 0.25],
           [0.25, 0.75, 0.  ]])
    """
    return convolve_directly(win) if win.shape[1] <= DIRECT else convolve_by_fft(win)


def convolve_directly(win: F8) -> F8:
    """The same, one contest after the other: O(contests^2) per row."""
    rows, contests = win.shape
    law = np.zeros((rows, contests + 1))
    law[:, 0] = 1.0
    work = np.arange(rows + 1, dtype=np.int64) * contests * contests
    run_in_threads(core.convolve_directly, work, np.ascontiguousarray(win), law)
    return law


def convolve_by_fft(win: F8, leaf: int = LEAF) -> F8:
    """The same, merging halves by Fourier transforms: O(contests log^2 contests) per row."""
    rows, contests = win.shape
    law = np.zeros((rows, contests + 1))
    step = max(1, CHUNK // (4 * max(contests, 1)))
    for at in range(0, rows, step):
        some = win[at : at + step]
        blocks = 1 << max(0, (contests - 1) // leaf).bit_length()
        width = -(-contests // blocks)
        sure = np.ones((len(some), blocks * width))  # a certain win changes nothing
        sure[:, :contests] = some
        part = convolve_directly(sure.reshape(len(some) * blocks, width)).reshape(
            len(some), blocks, width + 1
        )
        while blocks > 1:
            # a product of two polynomials of degree `width` has 2 width + 1 coefficients
            size = 1 << (2 * width).bit_length()
            wave = np.fft.rfft(part, size)
            wave = wave[:, ::2] * wave[:, 1::2]
            width, blocks = 2 * width, blocks // 2
            part = np.fft.irfft(wave, size)[:, :, : width + 1]
        # rounding in the transforms can leave tiny negative probabilities
        law[at : at + step] = np.maximum(part[:, 0, : contests + 1], 0.0)
    return law


# -- the expected discount -----------------------------------------------------------------------------------


class OpponentTable(NamedTuple):
    """Rows (items of one annotator, or tied groups of them) and their opponents.

    The edge of a row over an opponent is e = tilt (slope d + step sign(d)) with d = own - value, and over
    `unjudged_items` (items that the annotator did not judge) e = tilt x unjudged_edge. The tilt, by group, is an
    argument of every call, as it changes while the annotators' quality is estimated. Contests without an edge
    are even.
    """

    group: I8  # of each row
    own: F8
    first: I8  # opponents of the row: first .. last; they may be shared by rows
    last: I8
    value: F8  # of each opponent
    many: I8  # how many items it stands for
    slope: F8  # by group
    step: float
    unjudged_edge: F8  # by row: edge over unjudged items
    unjudged_items: I8  # by row: number of unjudged items
    size: I8  # by row: all contests
    uneven: I8  # by row: contests with an edge

    def list_win_chances(self, row: int, tilt: float) -> F8:
        """The chances of one row to win each of its contests; those without an edge come last."""
        of_row = slice(int(self.first[row]), int(self.last[row]))
        lead = self.own[row] - self.value[of_row]
        edge = self.slope[self.group[row]] * lead + self.step * np.sign(lead)
        edges = np.append(
            np.repeat(edge, self.many[of_row]), [self.unjudged_edge[row]] * int(self.unjudged_items[row])
        )
        chances = np.full(int(self.size[row]), 0.5)
        edges = edges[edges != 0]
        chances[: len(edges)] += tilt * edges
        return chances


class DiscountDrops(NamedTuple):
    """The mean drop of a discount from rank r + b to the next, b items winning even contests."""

    starts: I8  # by number of even contests
    value: F8


def compute_discount_drops(contests: OpponentTable, drop: F8) -> DiscountDrops:
    """The entries these contests need; `drop` is the fall of the discount after each rank from 0.

    One pass over the number of even contests, each halving. The table does not depend on the sizes of
    queries, so that one serves all of them, and it has no more entries than there are contests.
    """
    used = contests.uneven > 0
    even = (contests.size - contests.uneven)[used]
    most = int(even.max(initial=-1)) + 1
    width = np.zeros(most, np.int64)
    np.maximum.at(width, even, contests.uneven[used])
    starts = segments.offsets(width)
    value, mean = np.empty(int(starts[-1])), drop
    for k in range(most):
        value[starts[k] : starts[k + 1]] = mean[: width[k]]
        mean = (mean[:-1] + mean[1:]) / 2
    return DiscountDrops(starts, value)


def compute_excess_discount(contests: OpponentTable, tilt: F8, table: DiscountDrops) -> F8:
    """The expected discount of every row, minus that of an item whose contests are all even.

    For any discount; the time per row is quadratic in the number of uneven contests.
    """
    found = np.zeros(len(contests.own))
    work = segments.offsets(contests.uneven**2 + (contests.last - contests.first) + 1)
    run_in_threads(core.compute_excess_discount, work, contests, tilt, table.starts, table.value, found)
    return found


# -- the same for discounts that are sums of powers ----------------------------------------------------------


class PowerSum(NamedTuple):
    """A discount of the form sum_m weight_m exp(-rate_m r); a constant is irrelevant: it has no excess."""

    rate: F8
    weight: F8


def approximate_log_discount(size: int) -> PowerSum:
    """1 / log2(r + 2), with a relative error of its differences below 1e-10 for ranks up to `size`.

    1 / ln(1 + z) = 1 / z + int_0^inf dv / ((pi^2 + ln^2 v) (1 + v + z)), and 1 / y = int_0^inf exp(-s y) ds:
    a mixture of exp(-s r) over s > 0. Both integrals by the trapezoidal rule in the logarithm of the
    variable, which converges exponentially; rates below 1 / size are then replaced by four (Gauss).
    """
    inner = np.arange(-60.0, 60.0, 0.25)
    size = max(size, 2)
    s, v = np.exp(np.arange(np.log(1e-10 / size), np.log(40.0), 0.33)), np.exp(inner)
    mass = 0.25 * (np.exp(-s[:, None] * v) * v / (np.pi**2 + inner**2)).sum(axis=1)
    weight = 0.33 * s * np.log(2) * np.exp(-s) * (1 + np.exp(-s) * mass)
    low = s < 1 / size
    # the effect of a low rate is proportional to it
    rate, mass = _compute_gauss_nodes(s[low] * size, s[low] * weight[low])
    rate = rate / size
    return PowerSum(np.concatenate((rate, s[~low])), np.concatenate((mass / rate, weight[~low])))


def _compute_gauss_nodes(point: F8, mass: F8, nodes: int = 4) -> tuple[F8, F8]:
    """A few nodes and masses that integrate polynomials of degree 2 nodes - 1 like the given ones."""
    total = mass.sum()
    before, now, off = np.zeros(len(point)), np.sqrt(mass / total), 0.0
    jacobi = np.zeros((nodes, nodes))
    # Lanczos' recurrence: the eigenvalues of the Jacobi matrix are the nodes (Golub and Welsch, 1969)
    for i in range(nodes):
        jacobi[i, i] = now @ (point * now)
        after = point * now - jacobi[i, i] * now - off * before
        off = float(np.sqrt(after @ after))
        if i + 1 < nodes:
            jacobi[i, i + 1] = jacobi[i + 1, i] = off
        before, now = now, after / off
    value, vector = np.linalg.eigh(jacobi)
    return value, total * vector[0] ** 2


def compute_power_excess(contests: OpponentTable, tilt: F8, powers: PowerSum) -> F8:
    """As `compute_excess_discount`, for a sum of powers: E exp(-s rank) is a product over contests.

    With h = (1 + exp(-s)) / 2 and u = tanh(s / 2) the factor of a contest is h (1 + 2 e u).
    """
    found = np.zeros(len(contests.own))
    lengths = contests.last - contests.first + 1
    work = segments.offsets(lengths * len(powers.rate))
    # log h by log1p and expm1, which keep the digits of small rates
    tanh, log_half = 2 * np.tanh(powers.rate / 2), np.log1p(np.expm1(-powers.rate) / 2)
    given = (contests, tilt, tanh, log_half, powers.weight, found)
    run_in_threads(core.compute_power_excess, work, *given)
    return found
