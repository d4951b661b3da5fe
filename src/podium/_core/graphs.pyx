"""Connected components and reachability of directed graphs given by their edges."""

from libc.stdint cimport int64_t

import numpy as np


def sort_edges(const int64_t[::1] source, const int64_t[::1] target, int64_t nodes):
    """Group the edges by source: for every node the begin of its targets, and all targets."""
    starts_array, targets_array = np.zeros(nodes + 1, np.int64), np.empty(source.shape[0], np.int64)
    cdef int64_t[::1] starts = starts_array, targets = targets_array
    cdef int64_t[::1] free
    cdef Py_ssize_t i
    for i in range(source.shape[0]):
        starts[source[i] + 1] += 1
    for i in range(nodes):
        starts[i + 1] += starts[i]
    free = starts_array[:-1].copy()
    for i in range(source.shape[0]):
        targets[free[source[i]]] = target[i]
        free[source[i]] += 1
    return starts_array, targets_array


cdef int64_t find_root(int64_t[::1] parent, int64_t node) noexcept nogil:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


def label_weak_components(const int64_t[::1] source, const int64_t[::1] target, int64_t nodes):
    """A label 0, 1, ... per node, by first appearance; equal for nodes linked in any direction."""
    parent_array = np.arange(nodes)
    label_array = np.full(nodes, -1, np.int64)
    cdef int64_t[::1] parent = parent_array, label = label_array
    cdef int64_t a, b, root, count = 0
    cdef Py_ssize_t i
    with nogil:
        for i in range(source.shape[0]):
            a, b = find_root(parent, source[i]), find_root(parent, target[i])
            # the smaller node is the root, so that labels follow the order of the nodes
            if a < b:
                parent[b] = a
            elif b < a:
                parent[a] = b
        for i in range(nodes):
            root = find_root(parent, i)
            if label[root] < 0:
                label[root] = count
                count += 1
            label[i] = label[root]
    return label_array


def label_strong_components(const int64_t[::1] source, const int64_t[::1] target, int64_t nodes):
    """A label 0, 1, ... per node, equal for nodes that reach each other (Tarjan's algorithm with its own stack)."""
    starts_array, targets_array = sort_edges(source, target, nodes)
    cdef const int64_t[::1] starts = starts_array, targets = targets_array
    label_array = np.full(nodes, -1, np.int64)
    cdef int64_t[::1] label = label_array
    cdef int64_t[::1] index = np.full(nodes, -1, np.int64), low = np.empty(nodes, np.int64)
    cdef int64_t[::1] at = starts_array[:-1].copy()
    cdef int64_t[::1] path = np.empty(nodes, np.int64), waiting = np.empty(nodes, np.int64)
    cdef int64_t root, node, other, depth, held = 0, time = 0, count = 0
    with nogil:
        for root in range(nodes):
            if index[root] >= 0:
                continue
            depth = 0
            path[0] = root
            while depth >= 0:
                node = path[depth]
                if index[node] < 0:
                    index[node] = low[node] = time
                    time += 1
                    waiting[held] = node
                    held += 1
                if at[node] < starts[node + 1]:
                    other = targets[at[node]]
                    at[node] += 1
                    if index[other] < 0:
                        depth += 1
                        path[depth] = other
                    elif label[other] < 0 and index[other] < low[node]:
                        low[node] = index[other]
                    continue
                # all edges are followed: the node is the first of its component, or belongs to an earlier one
                if low[node] == index[node]:
                    while True:
                        held -= 1
                        other = waiting[held]
                        label[other] = count
                        if other == node:
                            break
                    count += 1
                depth -= 1
                if depth >= 0 and low[node] < low[path[depth]]:
                    low[path[depth]] = low[node]
    return label_array


def mark_reachable(const int64_t[::1] source, const int64_t[::1] target, int64_t nodes, int64_t root):
    """Whether each node can be reached from `root` along the edges."""
    starts_array, targets_array = sort_edges(source, target, nodes)
    cdef const int64_t[::1] starts = starts_array, targets = targets_array
    mark_array = np.zeros(nodes, np.bool_)
    cdef unsigned char[::1] mark = mark_array.view(np.uint8)
    cdef int64_t[::1] queue = np.empty(nodes, np.int64)
    cdef int64_t node, other, begin = 0, end = 1
    cdef Py_ssize_t i
    queue[0] = root
    mark[root] = 1
    with nogil:
        while begin < end:
            node = queue[begin]
            begin += 1
            for i in range(starts[node], starts[node + 1]):
                other = targets[i]
                if not mark[other]:
                    mark[other] = 1
                    queue[end] = other
                    end += 1
    return mark_array
