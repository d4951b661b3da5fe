"""Likelihoods of one pair of items: Bradley-Terry, Thurstone, and the two models of ties.

d is the difference of two scores, e the width of ties. The kinds are those of `podium.kernels.contest_models`.
"""

from libc.math cimport erfc, exp, expm1, fabs, log, log1p
from libc.stdint cimport int32_t, int64_t

cdef enum:
    LOGIT = 0
    PROBIT = 1
    DAVIDSON = 2
    RAO_KUPPER = 3

cdef struct PairDerivatives:
    double d
    double dd
    double e
    double de
    double ee

cdef struct Pairs:
    # the pairs of one query, and the side that was shown first (NULL: not known)
    const int32_t* first
    const int32_t* second
    const double* won
    const double* lost
    const double* tied
    const double* side
    int64_t count
    int64_t base  # the first slot of the query


cdef inline double mills_ratio(double x) noexcept nogil:
    """phi(x) / Phi(x)."""
    cdef double below = -x
    cdef int k
    if x > -5.0:
        return exp(-x * x / 2) / 2.5066282746310002 / (0.5 * erfc(-x / 1.4142135623730951))
    # a continued fraction, as the normal CDF underflows
    for k in range(60, 0, -1):
        below = k / below - x
    return below


cdef inline double log_normal_cdf(double x) noexcept nogil:
    """log Phi(x)."""
    if x > -5.0:
        return log(0.5 * erfc(-x / 1.4142135623730951))
    return -x * x / 2 - log(2.5066282746310002 * mills_ratio(x))


cdef inline void compute_logistic(double d, double* up, double* down) noexcept nogil:
    """1 / (1 + exp(-d)) and its complement, both to full precision."""
    cdef double z = exp(-fabs(d))
    cdef double small = z / (1 + z), large = 1 / (1 + z)
    up[0] = large if d >= 0 else small
    down[0] = small if d >= 0 else large


cdef inline double softplus(double d) noexcept nogil:
    """log(1 + exp(d))."""
    return max(d, 0.0) + log1p(exp(-fabs(d)))


cdef inline PairDerivatives differentiate_pair(
    int kind, double d, double e, double won, double lost, double tied
) noexcept nogil:
    """First and second derivatives of the negative log likelihood of one pair."""
    cdef PairDerivatives t = PairDerivatives(0.0, 0.0, 0.0, 0.0, 0.0)
    cdef double p = 0.0, q = 0.0, u = 0.0, v = 0.0, r, n, z, a, b, c, top, up, down, gap
    if kind == LOGIT:
        compute_logistic(d, &p, &q)
        t.d = lost * p - won * q
        t.dd = (won + lost) * p * q
    elif kind == PROBIT:
        up = mills_ratio(d)
        down = mills_ratio(-d)
        t.d = lost * down - won * up
        t.dd = won * up * (up + d) + lost * down * (down - d)
    elif kind == DAVIDSON:
        top = max(fabs(d) / 2, e)
        a = exp(d / 2 - top)
        b = exp(-d / 2 - top)
        c = exp(e - top)
        z = a + b + c
        p = a / z
        q = b / z
        r = c / z
        n = won + lost + tied
        t.d = lost * (p + r / 2) - won * (q + r / 2) + tied * (p - q) / 2
        t.dd = n / 4 * (4 * p * q + r * (p + q))
        t.e = n * r - tied
        t.de = -n / 2 * (p - q) * r
        t.ee = n * r * (p + q)
    else:
        compute_logistic(d - e, &p, &q)
        compute_logistic(d + e, &u, &v)
        up = -(won + tied) * q
        down = (lost + tied) * u
        a = (won + tied) * p * q
        b = (lost + tied) * u * v
        gap = -expm1(-2 * e)
        t.d = up + down
        t.dd = a + b
        t.e = down - up - 2 * tied / gap
        t.de = b - a
        t.ee = a + b + 4 * tied * exp(-2 * e) / (gap * gap)
    return t


cdef inline double compute_pair_value(
    int kind, double d, double e, double won, double lost, double tied
) noexcept nogil:
    """The negative log likelihood of one pair."""
    cdef double top, z
    if kind == LOGIT:
        return (won + lost) * log1p(exp(-fabs(d))) + won * max(-d, 0.0) + lost * max(d, 0.0)
    if kind == PROBIT:
        return -won * log_normal_cdf(d) - lost * log_normal_cdf(-d)
    if kind == DAVIDSON:
        top = max(fabs(d) / 2, e)
        z = exp(d / 2 - top) + exp(-d / 2 - top) + exp(e - top)
        return (won + lost + tied) * (top + log(z)) - (won - lost) * d / 2 - tied * e
    z = (won + tied) * softplus(e - d) + (lost + tied) * softplus(e + d)
    return z - tied * (2 * e + log(-expm1(-2 * e)))


cdef inline double sum_pair_values(
    const Pairs* pairs, int64_t begin, int64_t end, int kind, bint half, const double* x, double e, double a
) noexcept nogil:
    """The negative log likelihood of a range of pairs; `half` counts a tie as half a win for each side."""
    cdef int64_t p
    cdef double d, more, total = 0.0
    for p in range(begin, end):
        d = x[pairs.first[p] - pairs.base] - x[pairs.second[p] - pairs.base]
        d += pairs.side[p] * a if pairs.side != NULL else 0.0
        more = 0.5 * pairs.tied[p] if half else 0.0
        total += compute_pair_value(kind, d, e, pairs.won[p] + more, pairs.lost[p] + more, pairs.tied[p])
    return total
