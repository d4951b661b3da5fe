"""Distribution functions and their inverses: normal, Student's t, gamma and Poisson.

Each is the textbook formula in the form that loses no digits: tails are computed as tails, ratios of gamma
functions by their Stirling remainders, and inverses by Newton steps on the logarithm of a tail.
"""

from libc.math cimport INFINITY, M_PI, NAN, erfc, exp, expm1, fabs, isinf, isnan, log, log1p, sqrt, tan

import numpy as np

cdef double EPSILON = 2.220446049250313e-16
cdef double TINY = 1e-300
cdef double LOG_SQRT_TWO_PI = 0.9189385332046727418


cdef double compute_normal_cdf(double x) noexcept nogil:
    return 0.5 * erfc(-x / sqrt(2.0))


cdef double compute_scaled_erfc(double x) noexcept nogil:
    """exp(x^2) erfc(x), which stays finite where erfc underflows."""
    cdef double tail
    cdef int k
    if isnan(x):
        return x
    if x < 0:
        return 2 * exp(x * x) - compute_scaled_erfc(-x)
    if x < 4:
        return exp(x * x) * erfc(x)
    if x > 1e8:
        return 1 / (x * sqrt(M_PI))
    # Laplace's continued fraction from its end: 60 levels suffice from 4 on
    tail = x
    for k in range(60, 0, -1):
        tail = x + 0.5 * k / tail
    return 1 / (tail * sqrt(M_PI))


cdef double compute_normal_log_cdf(double x) noexcept nogil:
    if x > 0:
        return log1p(-compute_normal_cdf(-x))
    if x > -5:
        return log(compute_normal_cdf(x))
    return log(0.5 * compute_scaled_erfc(-x / sqrt(2.0))) - 0.5 * x * x


cdef double compute_normal_quantile(double p) noexcept nogil:
    cdef double x, t, error
    cdef int step
    if isnan(p) or p < 0 or p > 1:
        return NAN
    if p == 0:
        return -INFINITY
    if p == 1:
        return INFINITY
    if p == 0.5:
        return 0.0
    if p > 0.5:
        return -compute_normal_quantile(1 - p)
    # a rational start with four digits, then Halley's steps on the tail, relative to its density
    t = sqrt(-2 * log(p))
    x = -(t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))))
    for step in range(2):
        if p > 1e-290:
            error = (compute_normal_cdf(x) - p) * exp(0.5 * x * x + LOG_SQRT_TWO_PI)
        else:
            # the density would underflow: the ratio of tail and density is taken from their logarithms
            error = expm1(compute_normal_log_cdf(x) - log(p)) * exp(log(p) + 0.5 * x * x + LOG_SQRT_TWO_PI)
        x -= error / (1 + 0.5 * x * error)
    return x


cdef double compute_stirling_remainder(double x) noexcept nogil:
    """log gamma(x) - ((x - 1/2) log x - x + log sqrt(2 pi)), for x > 0."""
    cdef double shift = 0, r
    # the asymptotic series has 16 digits from 10 on; below, the recurrence leads there
    while x < 10:
        shift += (x + 0.5) * log1p(1 / x) - 1
        x += 1
    r = 1 / (x * x)
    return shift + (1 / 12.0 - r * (1 / 360.0 - r * (1 / 1260.0 - r * (1 / 1680.0 - r * (
        1 / 1188.0 - r * (691 / 360360.0 - r * (1 / 156.0 - r * 3617 / 122400.0))))))) / x


cdef double compute_log_gamma(double x) noexcept nogil:
    if isnan(x) or x <= 0:
        return NAN if not x == 0 else INFINITY
    if x == 1 or x == 2:
        return 0.0
    return (x - 0.5) * log(x) - x + LOG_SQRT_TWO_PI + compute_stirling_remainder(x)


cdef double compute_digamma_remainder(double x) noexcept nogil:
    """log x - digamma(x), for x > 0."""
    cdef double shift = 0, r
    # as above: the series from 10 on, the recurrence below
    while x < 10:
        shift += 1 / x - log1p(1 / x)
        x += 1
    r = 1 / (x * x)
    return shift + 0.5 / x + r * (1 / 12.0 - r * (1 / 120.0 - r * (1 / 252.0 - r * (1 / 240.0 - r * (
        1 / 132.0 - r * (691 / 32760.0 - r * (1 / 12.0 - r * 3617 / 8160.0)))))))


cdef double compute_digamma(double x) noexcept nogil:
    if isnan(x) or x <= 0:
        return NAN if not x == 0 else -INFINITY
    return log(x) - compute_digamma_remainder(x)


cdef double compute_log_gamma_divergence(double x, double y) noexcept nogil:
    """log gamma(y) - log gamma(x) - (y - x) digamma(x), for positive x and y."""
    cdef double gap = y - x, ratio
    if not (x > 0 and y > 0):
        return NAN
    # the leading terms of both Stirling formulas cancel here, not in rounded sums
    ratio = log1p(gap / x) if fabs(gap) < 0.5 * x else log(y / x)
    return (y - 0.5) * ratio - gap + gap * compute_digamma_remainder(x) + (
        compute_stirling_remainder(y) - compute_stirling_remainder(x))


cdef double compute_deviance(double x, double mean) noexcept nogil:
    """x log(x / mean) + mean - x without cancellation."""
    cdef double gap = x - mean, v, term, total, before
    cdef int k
    if fabs(gap) < 0.1 * (x + mean):
        v = gap / (x + mean)
        total = gap * v
        term = 2 * x * v
        v *= v
        for k in range(1, 1000):
            term *= v
            before = total
            total += term / (2 * k + 1)
            if total == before:
                return total
    return x * log(x / mean) - gap


cdef double compute_gamma_density(double a, double x) noexcept nogil:
    """x^a exp(-x) / gamma(a + 1), the Poisson probability of a at mean x."""
    return exp(-compute_deviance(a, x) - compute_stirling_remainder(a)) / sqrt(2 * M_PI * a)


cdef double sum_lower_gamma(double a, double x) noexcept nogil:
    cdef double term = 1, total = 1, k = a
    while term > EPSILON * total * 0.1:
        k += 1
        term *= x / k
        total += term
    return compute_gamma_density(a, x) * total


cdef double compute_upper_gamma_fraction(double a, double x) noexcept nogil:
    """Lentz's evaluation of the continued fraction of the upper tail, for x > a + 1."""
    cdef double b = x + 1 - a, c = 1 / TINY, d = 1 / b, h = d, step, change
    cdef long k
    for k in range(1, 1000000):
        step = -k * (k - a)
        b += 2
        d = step * d + b
        if fabs(d) < TINY:
            d = TINY
        c = b + step / c
        if fabs(c) < TINY:
            c = TINY
        d = 1 / d
        change = d * c
        h *= change
        if fabs(change - 1) < EPSILON:
            break
    return compute_gamma_density(a, x) * a * h


cdef double compute_lower_gamma(double a, double x) noexcept nogil:
    if isnan(a) or isnan(x) or a <= 0 or x < 0:
        return NAN
    if x == 0:
        return 0.0
    if isinf(x):
        return 1.0
    return sum_lower_gamma(a, x) if x < a + 1 else 1 - compute_upper_gamma_fraction(a, x)


cdef double compute_upper_gamma(double a, double x) noexcept nogil:
    if isnan(a) or isnan(x) or a <= 0 or x < 0:
        return NAN
    if x == 0:
        return 1.0
    if isinf(x):
        return 0.0
    return 1 - sum_lower_gamma(a, x) if x < a + 1 else compute_upper_gamma_fraction(a, x)


cdef double compute_gamma_quantile(double a, double p) noexcept nogil:
    """The x at which the lower part of the gamma distribution with shape `a` is `p`."""
    cdef double x, z, low = 0, high = INFINITY, gap, slope, new
    cdef int step
    if isnan(a) or isnan(p) or a <= 0 or p < 0 or p > 1:
        return NAN
    if p == 0:
        return 0.0
    if p == 1:
        return INFINITY
    # Wilson and Hilferty's cube; where it fails, the leading term of the series
    z = compute_normal_quantile(p)
    x = 1 - 1 / (9 * a) + z / (3 * sqrt(a))
    x = a * x * x * x
    if a < 1 or x <= 0.1 * a or x != x:
        new = exp((log(p) + compute_log_gamma(a + 1)) / a)
        if new < 0.5 * a or x <= 0:
            x = new
    for step in range(200):
        # the smaller part decides, so that no digits cancel
        gap = compute_lower_gamma(a, x) - p if p < 0.5 else (1 - p) - compute_upper_gamma(a, x)
        if gap > 0:
            high = x
        elif gap < 0:
            low = x
        else:
            return x
        slope = compute_gamma_density(a, x) * a / x
        new = x - gap / slope if slope > 0 else -1.0
        if not (low < new < high):
            new = 0.5 * (low + high) if not isinf(high) else 2 * x
        if fabs(new - x) <= 2 * EPSILON * x:
            return new
        x = new
    return x


cdef double compute_beta_fraction(double a, double b, double x) noexcept nogil:
    """Lentz's evaluation of the continued fraction of the incomplete beta function."""
    cdef double c = 1, d = 1 - (a + b) * x / (a + 1), h, step, change
    cdef long k
    if fabs(d) < TINY:
        d = TINY
    d = 1 / d
    h = d
    for k in range(1, 100000):
        step = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k))
        d = 1 + step * d
        c = 1 + step / c
        if fabs(d) < TINY:
            d = TINY
        if fabs(c) < TINY:
            c = TINY
        d = 1 / d
        h *= d * c
        step = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
        d = 1 + step * d
        c = 1 + step / c
        if fabs(d) < TINY:
            d = TINY
        if fabs(c) < TINY:
            c = TINY
        d = 1 / d
        change = d * c
        h *= change
        if fabs(change - 1) < EPSILON:
            break
    return h


cdef double compute_log_beta(double a, double b) noexcept nogil:
    """log B(a, b), from the remainders so that it holds for large arguments."""
    cdef double less = a if a < b else b, more = b if a < b else a, total = a + b
    cdef double rest = (
        compute_stirling_remainder(a) + compute_stirling_remainder(b) - compute_stirling_remainder(total)
    )
    return LOG_SQRT_TWO_PI + rest + (less - 0.5) * log(less / total) + more * log1p(-less / total) - 0.5 * log(more)


cdef double compute_beta_cdf(double a, double b, double x) noexcept nogil:
    cdef double front
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = exp(a * log(x) + b * log1p(-x) - compute_log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        return front * compute_beta_fraction(a, b, x) / a
    return 1 - front * compute_beta_fraction(b, a, 1 - x) / b


cdef double compute_beta_log_cdf(double a, double b, double x) noexcept nogil:
    cdef double log_front
    if x <= 0:
        return -INFINITY
    if x >= 1:
        return 0.0
    log_front = a * log(x) + b * log1p(-x) - compute_log_beta(a, b)
    if x < (a + 1) / (a + b + 2):
        return log_front + log(compute_beta_fraction(a, b, x) / a)
    return log1p(-exp(log_front) * compute_beta_fraction(b, a, 1 - x) / b)


cdef double compute_beta_quantile(double a, double b, double p) noexcept nogil:
    """The x at which the distribution function of Beta(a, b) is `p`."""
    cdef double x = a / (a + b), low = 0, high = 1, gap, slope, new, log_beta
    cdef int step
    if isnan(a) or isnan(b) or isnan(p) or a <= 0 or b <= 0 or p < 0 or p > 1:
        return NAN
    if p == 0 or p == 1:
        return p
    if p > 0.5 and b < a:
        # the short side decides, where no digits are lost to 1
        return 1 - compute_beta_quantile(b, a, 1 - p)
    log_beta = compute_log_beta(a, b)
    for step in range(300):
        gap = compute_beta_cdf(a, b, x) - p
        if gap > 0:
            high = x
        elif gap < 0:
            low = x
        else:
            return x
        slope = exp((a - 1) * log(x) + (b - 1) * log1p(-x) - log_beta)
        new = x - gap / slope if slope > 0 else -1.0
        if not (low < new < high):
            # towards 0 a quantile of small `a` is many powers of ten away: halve the exponent, not the number
            new = 0.5 * (low + high) if low > 0.1 * high else (sqrt(low * high) if low > 0 else high * 1e-3)
        if fabs(new - x) <= 2 * EPSILON * x:
            return new
        x = new
    return x


cdef double compute_log_student_scale(double a) noexcept nogil:
    """log(gamma(a + 1/2) / gamma(a)), from the remainders so that it holds for large `a`."""
    return a * log1p(0.5 / a) + 0.5 * log(a) - 0.5 + compute_stirling_remainder(a + 0.5) - compute_stirling_remainder(a)


cdef double convert_to_normal(double degrees, double ratio) noexcept nogil:
    """Hill's expansion of the normal deviate with the same tail, exact to 15 digits for many degrees."""
    cdef double a = degrees - 0.5, b = 48 * a * a, y = a * log1p(ratio)
    return sqrt(y) * ((((((-0.4 * y - 3.3) * y - 24) * y - 85.5) / (0.8 * y * y + 100 + b)) + y + 3) / b + 1)


cdef double compute_student_tail(double degrees, double t) noexcept nogil:
    """P(T > t) for t >= 0."""
    cdef double a = 0.5 * degrees, ratio = t * t / degrees, x, front
    if t == 0:
        return 0.5
    if isinf(t):
        return 0.0
    if isinf(degrees):
        return compute_normal_cdf(-t)
    if degrees > 5000:
        return compute_normal_cdf(-convert_to_normal(degrees, ratio))
    x = 1 / (1 + ratio)
    # x^a (1 - x)^(1/2) / B(a, 1/2), where 1 - x = ratio x
    front = exp(compute_log_student_scale(a) - (a + 0.5) * log1p(ratio)) * sqrt(ratio / M_PI)
    if x < (a + 1) / (a + 2.5):
        return 0.5 * front * compute_beta_fraction(a, 0.5, x) / a
    return 0.5 - front * compute_beta_fraction(0.5, a, ratio * x)


cdef double compute_student_cdf(double degrees, double t) noexcept nogil:
    if isnan(degrees) or isnan(t) or degrees <= 0:
        return NAN
    return compute_student_tail(degrees, -t) if t <= 0 else 1 - compute_student_tail(degrees, t)


cdef double compute_student_quantile(double degrees, double p) noexcept nogil:
    cdef double t, q, low = 0, high = INFINITY, tail, density, new
    cdef int step
    if isnan(degrees) or isnan(p) or degrees <= 0 or p < 0 or p > 1:
        return NAN
    if p == 0.5:
        return 0.0
    if p > 0.5:
        return -compute_student_quantile(degrees, 1 - p)
    if p == 0:
        return -INFINITY
    if isinf(degrees):
        return compute_normal_quantile(p)
    if degrees == 1:
        return -1 / tan(M_PI * p)
    q = p
    t = -compute_normal_quantile(p)
    for step in range(500):
        tail = compute_student_tail(degrees, t)
        if tail > q:
            low = t
        elif tail < q:
            high = t
        else:
            break
        density = exp(
            compute_log_student_scale(0.5 * degrees) - 0.5 * (degrees + 1) * log1p(t * t / degrees)
        ) / sqrt(M_PI * degrees)
        # near the middle a step on the tail itself, far out one on logarithms, where it is nearly a line
        if q > 0.1:
            new = t + (tail - q) / density
        else:
            new = t * exp(tail * log(tail / q) / (density * t))
        if not (low < new < high):
            new = 0.5 * (low + high) if not isinf(high) else 2 * t + 1
        if fabs(new - t) <= 2 * EPSILON * t:
            t = new
            break
        t = new
    return -t


cdef double compute_poisson_cdf(double count, double mean) noexcept nogil:
    if isnan(count) or isnan(mean) or count < 0 or mean < 0:
        return NAN
    return compute_upper_gamma(count + 1, mean) if mean > 0 else 1.0


ctypedef double (*Unary)(double) noexcept nogil
ctypedef double (*Binary)(double, double) noexcept nogil
ctypedef double (*Ternary)(double, double, double) noexcept nogil


cdef object apply_unary(Unary function, object x):
    values = np.ascontiguousarray(x, np.float64)
    out = np.empty(values.size)
    cdef const double[::1] source = values.reshape(-1)
    cdef double[::1] target = out
    cdef Py_ssize_t i, n = source.shape[0]
    with nogil:
        for i in range(n):
            target[i] = function(source[i])
    return out.reshape(np.shape(x))[()]


cdef object apply_binary(Binary function, object a, object b):
    first, second = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    shape = first.shape
    out = np.empty(first.size)
    cdef const double[::1] left = np.ascontiguousarray(first).reshape(-1)
    cdef const double[::1] right = np.ascontiguousarray(second).reshape(-1)
    cdef double[::1] target = out
    cdef Py_ssize_t i, n = left.shape[0]
    with nogil:
        for i in range(n):
            target[i] = function(left[i], right[i])
    return out.reshape(shape)[()]


cdef object apply_ternary(Ternary function, object a, object b, object c):
    first, second, third = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, c)))
    shape = first.shape
    out = np.empty(first.size)
    cdef const double[::1] left = np.ascontiguousarray(first).reshape(-1)
    cdef const double[::1] middle = np.ascontiguousarray(second).reshape(-1)
    cdef const double[::1] right = np.ascontiguousarray(third).reshape(-1)
    cdef double[::1] target = out
    cdef Py_ssize_t i, n = left.shape[0]
    with nogil:
        for i in range(n):
            target[i] = function(left[i], middle[i], right[i])
    return out.reshape(shape)[()]


def normal_cdf(x):
    """The normal distribution function."""
    return apply_unary(compute_normal_cdf, x)


def normal_quantile(p):
    """The normal quantile."""
    return apply_unary(compute_normal_quantile, p)


def normal_log_cdf(x):
    """The logarithm of the normal distribution function."""
    return apply_unary(compute_normal_log_cdf, x)


def scaled_erfc(x):
    """exp(x^2) erfc(x)."""
    return apply_unary(compute_scaled_erfc, x)


def log_gamma(x):
    """The logarithm of the gamma function, for positive `x`."""
    return apply_unary(compute_log_gamma, x)


def digamma(x):
    """The derivative of `log_gamma`, for positive `x`."""
    return apply_unary(compute_digamma, x)


def log_gamma_divergence(x, y):
    """`log_gamma` at `y` minus its tangent at `x` there: never negative, without cancellation."""
    return apply_binary(compute_log_gamma_divergence, x, y)


def gamma_quantile(a, p):
    """The quantile of the gamma distribution with shape `a`."""
    return apply_binary(compute_gamma_quantile, a, p)


def student_cdf(degrees, t):
    """Student's distribution function."""
    return apply_binary(compute_student_cdf, degrees, t)


def student_quantile(degrees, p):
    """Student's quantile."""
    return apply_binary(compute_student_quantile, degrees, p)


def poisson_cdf(count, mean):
    """The Poisson distribution function."""
    return apply_binary(compute_poisson_cdf, count, mean)


def beta_log_cdf(a, b, x):
    """The logarithm of the distribution function of the beta distribution."""
    return apply_ternary(compute_beta_log_cdf, a, b, x)


def beta_quantile(a, b, p):
    """The quantile of the beta distribution."""
    return apply_ternary(compute_beta_quantile, a, b, p)
