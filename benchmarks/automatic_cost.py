"""What `auto` without labels costs on 10 million rows, against rrf: python benchmarks/automatic_cost.py [QUERIES]

Processor seconds of one thread, the least of three turns, after reading: `rrf` alone; and the choice of the method and
its ranking. At most three times rrf plus 0.2 s is what docs/project/auto-protocol.md asks for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from synthetic import rows, runs

from podium import Preferences, choose_method, make


def measure(call: Callable[[], object]) -> float:
    """The least processor time of three turns."""
    spent = []
    for _ in range(3):
        begin = time.process_time()
        call()
        spent.append(time.process_time() - begin)
    return min(spent)


def main() -> None:
    """Print both times and their ratio."""
    queries = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    preferences = Preferences.from_rows(**rows(runs(queries)))
    plain = measure(lambda: make("rrf").aggregate(preferences))
    automatic = measure(lambda: choose_method(preferences).method.aggregate(preferences))
    print(
        f"{preferences.lists.rows:,} rows: rrf {plain:.2f} s, auto {automatic:.2f} s, {automatic / plain:.1f} times"
    )


if __name__ == "__main__":
    main()
