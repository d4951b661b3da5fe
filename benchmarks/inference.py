"""Inference with many experts and many items: the CRF against SVD features (Volkovs & Zemel, CIKM 2013, figure 2).

The test queries of fold 1 of MQ2008-agg, with all experts repeated 1 to 10 times, and with all items repeated 1 to 10
times; `podium reproduce figure2` prints some of these steps as a table.

python benchmarks/inference.py [-o figure.svg]       needs the data: PODIUM_DATA or ../shared/data

One thread for all; the linear algebra library reads its number of threads when it is loaded.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PODIUM_THREADS"):
    os.environ[_name] = "1"
sys.path.append(str(Path(__file__).parents[1] / "papers"))

from podium_papers.inference_times import DATA, GROWTH, measure_times
from podium_papers.paper_datasets import load_dataset


def run(quick: bool = False) -> list[dict[str, Any]]:
    """One row per kind of growth, number of repetitions and way to score."""
    folder = os.environ.get("PODIUM_DATA", Path(__file__).parents[2] / "shared" / "data")
    fold = load_dataset(DATA, folder).folds()[0]
    return [
        {"repeated": growth, "times": times, "way": way, "ms": milliseconds}
        for growth in GROWTH
        for times in ((1, 10) if quick else range(1, 11))
        for way, milliseconds in measure_times(fold, growth, times).items()
    ]


def draw(rows: list[dict[str, Any]], path: str) -> None:
    """Both panels, times on a log scale."""
    import altair

    chart = (
        altair.Chart(altair.Data(values=rows))
        .mark_line(point=True)
        .encode(
            x=altair.X("times:Q", title="times repeated"),
            y=altair.Y("ms:Q", title="milliseconds per query", scale=altair.Scale(type="log")),
            color=altair.Color("way:N", title=None),
        )
        .properties(width=300, height=220)
        .facet(column=altair.Column("repeated:N", title=None))
    )
    chart.save(path)


def main() -> None:
    """Print the times and draw the figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", help="where to draw the figure (.svg or .png)")
    parser.add_argument("--quick", action="store_true", help="the first and the tenth step only")
    options = parser.parse_args()
    rows = run(options.quick)
    for row in rows:
        print(f"{row['repeated']} {row['times']}x  {row['way']}: {row['ms']:.3g} ms per query")
    if options.output:
        draw(rows, options.output)


if __name__ == "__main__":
    main()
