"""Time of every method per step of its cost class: python benchmarks/screening.py [--learned] [LETOR FILE ...]

`podium.evaluate.method_screening` says from tags and sizes which methods are quick; this shows what that costs, on the
embedded data or on the files given. With --learned: CPU seconds of one fit per million rows, from which
`podium.evaluate.tuning.labeled_choice` estimates what fits a time budget.
"""

from __future__ import annotations

import sys
import time
import warnings

from podium import formats, make
from podium.core import registry
from podium.core.errors import PodiumWarning
from podium.data.demo import demo
from podium.evaluate.method_screening import estimate_steps, screen_methods
from podium.reporting.inputs import default_methods


def time_fits(files: list[str]) -> None:
    """Print the time of a fit of every method that learns from labels."""
    content = formats.read(files) if files else demo()
    p, labels = content.preferences, content.labels
    for name, cls in sorted(registry.aggregators.all().items()):
        if cls.tags.supervised and p.forms <= cls.tags.accepts:
            spent = []
            for _ in range(2):  # the first imports modules
                begin = time.process_time()
                make(name).fit(p, labels)
                spent.append(time.process_time() - begin)
            print(
                f"{name:20} {1e6 * min(spent) / (p.lists.rows + len(p.comparisons)):8.1f} s per million rows"
            )


def main(files: list[str]) -> None:
    warnings.simplefilter("ignore", PodiumWarning)
    if "--learned" in files:
        time_fits([name for name in files if name != "--learned"])
        return
    p = formats.read(files).preferences if files else demo().preferences
    assert p is not None
    found = screen_methods(p, default_methods(p))
    print(p)
    total = 0.0
    for name in found.methods:
        method, tags = make(name), registry.aggregators.get(name).tags
        spent = []
        for _ in range(2):  # the first imports modules
            begin = time.process_time()
            method.aggregate(p)
            spent.append(time.process_time() - begin)
        total += min(spent)
        steps = estimate_steps(tags, p)
        each = 1e9 * min(spent) / max(steps, 1)
        print(
            f"{name:20} {tags.pairwise:6} {tags.cost:8} {steps:12,} steps {min(spent):8.3f} s {each:8.1f} ns a step"
        )
    print(f"{len(found.methods)} methods in {total:.2f} s; too slow here: {', '.join(found.slow) or 'none'}")


if __name__ == "__main__":
    main(sys.argv[1:])
