"""Arrays in, arrays out. The only package that may import numba, and it does so only for large inputs.

Every function here has a numpy body for small inputs, so that nobody waits for a compiler, and hands inputs of
at least `SMALL` rows to its compiled sibling in `podium.kernels.compiled`. Both are tested against plain loops.
"""
