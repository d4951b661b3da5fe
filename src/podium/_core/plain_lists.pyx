"""Sums of points over plain Python lists of ids, and the order of such sums, for one query.

These loops run over Python objects and so keep the GIL; a query has some hundred ids.
"""


def add_points(dict totals, answer, tuple points):
    """Add to the total of each id the points of its position.

    Returns 1 if all ids are strings, 2 if all are integers, 3 for both, and 0 where there are none. Stops with -1 at
    an id of another type, and at the first id without points: a list of a class of its own may yield more ids than
    its length.
    """
    cdef int types = 0
    cdef Py_ssize_t i = 0, count = len(points)
    cdef object item, total
    for item in answer:
        if i == count:
            return -1
        if type(item) is str:
            types |= 1
        elif type(item) is int:
            types |= 2
        else:
            return -1
        total = totals.get(item)
        totals[item] = points[i] if total is None else <double>total + <double>points[i]
        i += 1
    return types


def rank_totals(dict totals, double tolerance, id_order):
    """Ids by falling total, and their totals; `id_order` is the sort key of ids, None if they sort by themselves.

    Totals that differ from the one before by at most `tolerance` of it are equal: they get the value of the first of
    them, and their ids stand in id order.
    """
    cdef list ranking = sorted(totals, key=totals.__getitem__, reverse=True), tied
    cdef list scores = [totals[item] for item in ranking]
    cdef Py_ssize_t place, begin = 0, count = len(scores)
    cdef double above = scores[0] if count else 0.0, here = 0.0
    for place in range(1, count + 1):
        if place < count:
            here = scores[place]
            if here == above or above - here <= tolerance * above:
                above = here
                continue
        if place - begin > 1:
            tied = ranking[begin:place]
            tied.sort(key=id_order)
            ranking[begin:place] = tied
            scores[begin:place] = [scores[begin]] * (place - begin)
        begin = place
        above = here
    return ranking, scores
