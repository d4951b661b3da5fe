"""The rule of `auto` for votes and ratings against all crowd methods, on clean and spammed crowds.

python benchmarks/automatic_crowds.py --data FOLDER [--set NAME] [--first 300] [--draws 3] [--rival NAME]

Sets: TREC 2011 (ratings), MIREX 2005 and reading level (votes), and the simulated crowds of `crowd_regret.py`; as they
are, and with 10, 30 and 50 % of random or malicious annotators added to every query. The rule is `choose_method` on
the crowd as it is given. Rivals are the methods of `robustness.py`, the measure is its first metric, in points of 100.
Printed are, by cell, the rule's value, the best and the worst rival, and the regret; and the mean regret. The rule
holds if that is at most two points and the rule is the worst in no cell (docs/project/auto-protocol.md).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from crowd_regret import SIMULATED, sample_crowd
from robustness import DEFAULT_METRICS, METHODS, METRICS, one

from podium.data.dataset import Dataset
from podium.methods.automatic_choice import choose_method
from podium.testing.crowds import add_spammers
from podium_papers.paper_datasets import load_dataset

REAL = ("reading-level", "mirex2005", "trec2011-crowd")
CELLS: tuple[tuple[float, Any], ...] = (
    (0.0, "random"), (0.1, "random"), (0.3, "random"), (0.5, "random"),
    (0.1, "malicious"), (0.3, "malicious"), (0.5, "malicious"),
)  # fmt: skip
# the rule was amended after draw 100, and the draws from 200 were reported with earlier settings of CrowdAgg
FIRST_DRAW = 300


def measure_cell(
    name: str, share: float, kind: Any, draws: range, folder: Path | None, rivals: list[str]
) -> dict[str, float]:
    """The mean of every method over the draws; `auto` is the method that the rule names."""
    metrics = METRICS.get(name, ("pairs",) if name in SIMULATED else DEFAULT_METRICS)[:1]
    values = []
    for draw in draws if share or name in SIMULATED else draws[:1]:
        data = sample_crowd(name, draw) if name in SIMULATED else load_dataset(name, folder)
        crowd = add_spammers(data.preferences, share, kind, draw, data.labels) if share else data.preferences
        methods = {n: m for n, m in METHODS.items() if n in rivals and can_read(m, crowd)}
        methods["auto"] = repr(choose_method(crowd).method)
        values.append({n: 100 * v[0] for n, v in one(Dataset(crowd, data.labels), methods, metrics).items()})
    return {n: float(np.mean([v[n] for v in values])) for n in values[0]}


def can_read(spec: str, crowd: Any) -> bool:
    """Whether the method accepts the form of the crowd."""
    from podium import make

    return bool(crowd.forms <= make(spec).tags.accepts)


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, help="folder with the data sets; without it the simulated crowds only"
    )
    parser.add_argument("--set", action="append", choices=(*REAL, *SIMULATED), help="a set; may be repeated")
    parser.add_argument("--first", type=int, default=FIRST_DRAW, help="the first draw")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--rival", action="append", choices=METHODS, help="a rival; may be repeated")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    draws = range(options.first, options.first + options.draws)
    for name in options.set or [*(REAL if options.data else ()), *SIMULATED]:
        for share, kind in CELLS:
            values = measure_cell(name, share, kind, draws, options.data, options.rival or list(METHODS))
            rivals = {n: v for n, v in values.items() if n != "auto"}
            best, worst = max(rivals, key=rivals.__getitem__), min(rivals, key=rivals.__getitem__)
            regret = max(0.0, rivals[best] - values["auto"])
            rows.append({"set": name, "share": share, "kind": kind, "regret": regret, "values": values})
            cell = f"{share:.0%} {kind}" if share else "clean"
            print(
                f"{name:18} {cell:14} auto {values['auto']:5.1f}, best {rivals[best]:5.1f} ({best}), worst "
                f"{rivals[worst]:5.1f} ({worst}), regret {regret:4.1f}"
                f"{', auto is the worst' if values['auto'] <= rivals[worst] + 1e-9 else ''}",
                flush=True,
            )
    print(f"mean regret {np.mean([r['regret'] for r in rows]):.2f} over {len(rows)} cells")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
