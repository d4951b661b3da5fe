"""The columns of many pairwise matrices."""


cdef class MatrixColumns:
    """The columns of `podium.kernels.preference_matrices.PreferenceMatrices`."""

    def __cinit__(self, m):
        self.slots, self.query, self.list_starts, self.starts = m.slots, m.query, m.list_starts, m.starts
        self.item, self.value, self.binary, self.below = m.item, m.value, m.binary, m.below
        self.vote_starts, self.winner, self.loser = m.vote_starts, m.winner, m.loser
        self.strength = m.strength
