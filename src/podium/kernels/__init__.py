"""Numerical kernels: arrays in, arrays out. Only this package imports the compiled loops in `podium._core`.

A function here checks nothing: it allocates the output, splits the work into ranges of queries, and calls a
compiled kernel. `tests/reference` holds numpy expressions and plain loops that the kernels are tested against.
"""
