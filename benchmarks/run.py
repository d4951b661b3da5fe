"""`make bench`: speed against peers in one run, as ratios, with targets.

python benchmarks/run.py [--quick] [--only rrf,condorcet,single,reading,learning,choice,...]
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import floor
import fusion
import small
from timing import seconds

RESULTS = Path(__file__).parent / "results" / "latest.json"
# modules here with a run(quick) that gives rows of a table
OTHERS = ("reading", "metrics", "svd", "learning", "choice", "leaderboard", "crowd", "tuning", "retargeting")
SECTIONS = (*fusion.METHODS, "single", "start", "floor", *OTHERS)


def machine() -> dict[str, Any]:
    """What the figures belong to."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_before": os.getloadavg(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": fusion.versions(),
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def table(found: list[dict[str, Any]]) -> None:
    """Print rows of equal shape with aligned columns."""
    if not found:
        return
    names = list(dict.fromkeys(name for row in found for name in row))
    cells = [names, *([_cell(row.get(name)) for name in names] for row in found)]
    width = [max(len(line[i]) for line in cells) for i in range(len(names))]
    for number, line in enumerate(cells):
        print("  ".join(text.ljust(w) for text, w in zip(line, width, strict=True)).rstrip())
        if number == 0:
            print("  ".join("-" * w for w in width))
    sys.stdout.flush()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def fusion_line(row: fusion.Row) -> dict[str, Any]:
    """One row of the fusion table as printed."""
    line: dict[str, Any] = {"method": row.method, "peer": row.peer, "queries": f"{row.queries:,}"}
    if row.error or row.times is None or row.timing is None or row.podium is None:
        return line | {"faster by": "failed", "target": row.error}
    least, most = row.times[1:]
    return line | {
        "faster by": f"{row.times[0]:.1f}x",
        "spread": f"{least:.1f} .. {most:.1f}",
        "target": row.verdict,
        "peer time": str(row.timing),
        "Podium time": str(row.podium),
        "peer build": seconds(row.build or 0.0),
        "Podium build": seconds(row.podium_build or 0.0),
        "answer": row.answer,
    }


def fusion_section(only: tuple[str, ...], quick: bool) -> list[dict[str, Any]]:
    """Measure and print all fusion methods asked for."""
    rows = []
    for row in fusion.run(only, quick):
        rows.append(row)
        print(f"  ... {row.method}, {row.peer}, {row.queries:,} queries", file=sys.stderr, flush=True)
    rows.sort(key=lambda r: (fusion.METHODS.index(r.method), r.queries))
    table([fusion_line(row) for row in rows])
    for note in dict.fromkeys(
        f"{r.peer} {r.method}: {r.note}" for r in rows if r.note and r.peer != "best table"
    ):
        print(f"  note, {note}")
    return [row.to_dict() for row in rows]


def other_section(name: str, quick: bool) -> list[dict[str, Any]]:
    """A benchmark that lives in its own module, if it is there."""
    try:
        found: list[dict[str, Any]] = importlib.import_module(name).run(quick)
    except Exception as problem:  # reported in place of its table; the other sections still run
        found = [{"section": name, "failed": f"{type(problem).__name__}: {problem}"}]
    table(found)
    return found


def printed(call: Callable[[bool], Any], quick: bool) -> list[dict[str, Any]]:
    """Run a section that gives rows (or one) and print them."""
    result = call(quick)
    rows = result if isinstance(result, list) else [result]
    table(rows)
    return rows


def main() -> None:
    """Run the sections asked for, print them, keep them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="1,000 queries and few repeats, about a minute")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"comma-separated: {', '.join(SECTIONS)}")
    options = parser.parse_args()
    only = tuple(options.only.split(","))
    if unknown := [name for name in only if name not in SECTIONS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {"command": " ".join(sys.argv), "machine": machine()}
    print(json.dumps(results["machine"], indent=1))
    if methods := tuple(name for name in only if name in fusion.METHODS):
        print("\nFusion in memory, everything sorted; faster by = peer's median over Podium's")
        results["fusion"] = fusion_section(methods, options.quick)
    for name, title, call in (
        ("single", "One query", small.single_query),
        ("start", "Whole processes", small.cold_start),
        ("floor", "RRF kernels against a plain copy", floor.run),
    ):
        if name in only:
            print(f"\n{title}")
            results[name] = printed(call, options.quick)
    for name in OTHERS:
        if name in only and (Path(__file__).parent / f"{name}.py").exists():
            print(f"\n{name.capitalize()}")
            results[name] = other_section(name, options.quick)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1, default=str))
    print(f"\nkept in {RESULTS}")


if __name__ == "__main__":
    main()
