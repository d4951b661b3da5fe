"""Warnings are captured by the thread that caused them, however many threads capture."""

import threading
import warnings

import pytest

from podium.core.errors import PodiumWarning, capture_warnings


def test_threads_hear_their_own_warnings_and_leave_nothing_behind():
    before, shown = list(warnings.filters), warnings.showwarning
    both, found = threading.Barrier(2), {}

    def listen(name, early):
        with capture_warnings() as said:
            both.wait(5)
            for number in range(50):
                warnings.warn(f"{name} {number}", PodiumWarning, stacklevel=1)
            if early:
                both.wait(5)  # leaves first, having come in either order
        if not early:
            both.wait(5)
        found[name] = said

    threads = [threading.Thread(target=listen, args=pair) for pair in (("a", True), ("b", False))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == {name: [f"{name} {n}" for n in range(50)] for name in "ab"}
    assert list(warnings.filters) == before
    assert warnings.showwarning is shown


def test_others_warnings_and_filters_stay_theirs():
    with pytest.warns(DeprecationWarning, match="old"), capture_warnings() as said:
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert said == []
    with capture_warnings() as outer:
        with capture_warnings() as inner:
            warnings.warn("x", PodiumWarning, stacklevel=1)
        with warnings.catch_warnings():  # as a library may do that puts back what it found
            warnings.simplefilter("error")
            with capture_warnings() as again:
                warnings.warn("y", PodiumWarning, stacklevel=1)
        warnings.warn("z", PodiumWarning, stacklevel=1)
    assert (outer, inner, again) == (["z"], ["x"], ["y"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PodiumWarning):
            warnings.warn("w", PodiumWarning, stacklevel=1)
