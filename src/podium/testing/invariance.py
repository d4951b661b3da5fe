"""The invariance grid at full size: `python -m podium.testing.invariance`.

The checks in `INVARIANCE` (row order, names, threads, batch sizes, weight 0) run for every method on many
more samples than in the test suite. Plug-in authors can name their own methods.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from podium.core import registry
from podium.testing import checks

__all__ = ["INVARIANCE", "main"]

INVARIANCE = (
    "row_order",
    "renaming_items",
    "renaming_experts",
    "weight_zero",
    "threads_do_not_matter",
    "earlier_calls_do_not_matter",
    "one_answer_at_every_batch_size",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the grid, print the failures, and return 1 if there are any."""
    parser = argparse.ArgumentParser(
        prog="python -m podium.testing.invariance",
        description="Run the invariance checks of the methods on many random samples.",
    )
    parser.add_argument("methods", nargs="*", help="names of methods (default: all)")
    parser.add_argument(
        "--cases", type=int, default=15, help="multiple of the test suite's number of samples (default: 15)"
    )
    parser.add_argument("--checks", nargs="+", choices=INVARIANCE, default=INVARIANCE, help="default: all")
    options = parser.parse_args(arguments)
    classes = [registry.aggregators.get(n) for n in options.methods] or [*registry.aggregators.all().values()]
    begin, ran, failed = time.perf_counter(), 0, 0
    for cls in classes:
        for name in options.checks:
            if checks.plan(cls)[name] != "run":
                continue
            ran += 1
            try:
                with checks.more_cases(options.cases):
                    checks.run(cls, name)
            except Exception as error:
                failed += 1
                text = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
                print(f"{cls.name} {name}: {text}", flush=True)
    seconds = time.perf_counter() - begin
    print(f"{ran} checks of {len(classes)} methods, {failed} failed, {seconds:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
