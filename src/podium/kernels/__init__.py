"""Numerical kernels: arrays in, arrays out. Only this package imports numba, and only for large inputs.

Every function has a numpy body for small inputs, which avoids waiting for the compiler, and passes inputs of
at least `SMALL` rows to its compiled twin in `podium.kernels.compiled`. Both are tested against plain loops.
"""
