"""Fusion without labels where experts are good, random, reversed, copied, junk or short: the protocol of `auto`.

python benchmarks/automatic_choice.py --data FOLDER --part development [--quick] [--json FILE]
python benchmarks/automatic_choice.py --data FOLDER --part confirmation
python benchmarks/automatic_choice.py --data FOLDER --spoil mq2008 --first 220 --draws 20

NDCG@10 in points of 100 of `quality_weighted` and its rivals on real sets, and of `rrf`, `rbc` and `quality_weighted`
on sets in which a share of the experts was replaced. docs/project/auto-protocol.md says what is measured, and why.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from podium import Features, Labels, Preferences, make, read
from podium.data.demo import demo
from podium.evaluate import evaluate
from podium_papers.paper_datasets import load_dataset

RIVALS = ("rrf", "rbc", "combmnz", "borda", "mc4", "retargeting")
METHOD = "quality_weighted"
REAL = {
    "development": ("demo", "mq2008-agg", "ohsumed"),
    "confirmation": ("robust03-runs", "mq2007-agg", "mq2008", "mslr-web10k-sample"),
}
SPOILED = {  # set: number of seeds
    "development": {"demo": 5, "mq2008-agg": 5, "robust03-runs": 5, "ohsumed": 2},
    "confirmation": {"demo": 5, "mq2008-agg": 5, "robust03-runs": 5, "mq2007-agg": 3, "mq2008": 3},
}
KINDS = ("random", "reversed", "copied", "junk", "short")
SHARES = (1 / 5, 1 / 3, 1 / 2, 4 / 5)
FIRST_SEED = {"development": 0, "confirmation": 200}  # seeds from 100 were used for an earlier version


def load_set(name: str, folder: Path) -> tuple[Preferences, Labels]:
    """A set as preferences and labels; every feature column of a LETOR set is an expert."""
    if name == "demo":
        data = demo()
    elif name == "robust03-runs":
        runs, qrels = (read(str(folder / name / f"robust03.{end}.gz")) for end in ("tsv", "qrels"))
        return runs.preferences, qrels.labels
    elif name.endswith("-agg"):
        data = load_dataset(name, folder)
    else:
        content = read(sorted(str(path) for path in (folder / name).glob("*.txt*")))
        return read_columns_as_experts(content.features), content.labels
    assert data.labels is not None
    return data.preferences, data.labels


def read_columns_as_experts(features: Features) -> Preferences:
    """Every column that is not constant ranks the items of all queries, larger values first."""
    index, values = features.index, features.values
    query = np.array(index.queries.tolist(), object)[index.query_of_slot]
    item = np.array(index.items.tolist(), object)
    columns = [c for c in range(values.shape[1]) if np.ptp(values[:, c]) > 0]
    n = len(columns)
    expert = np.repeat([f"column {c + 1}" for c in columns], len(item)).tolist()
    score = values[:, columns].T.reshape(-1).astype(np.float64)
    queries, items = np.tile(query, n).tolist(), np.tile(item, n).tolist()
    return Preferences.from_rows(queries, expert, items, score=score, unlisted="below")


def spoil_experts(preferences: Preferences, kind: str, share: float, seed: int) -> Preferences:
    """The preferences with a share of the experts replaced by bad ones; the ranks in the lists stay."""
    dice = np.random.default_rng(seed)
    experts, lists = preferences.experts.tolist(), preferences.lists
    bad = np.isin(np.arange(len(experts)), dice.permutation(len(experts))[: round(share * len(experts))])
    names = preferences.index.items.tolist()
    rows: list[tuple[Any, Any, Any, int]] = []
    for query, which in zip(
        preferences.queries.tolist(), itertools.pairwise(lists.query_starts.tolist()), strict=True
    ):
        copied: list[tuple[Any, int]] | None = None
        for one in range(*which):
            part, expert = slice(lists.starts[one], lists.starts[one + 1]), experts[lists.expert[one]]
            items, ranks = [names[i] for i in lists.item[part].tolist()], lists.rank[part].tolist()
            entries = list(zip(items, ranks, strict=True))
            if bad[lists.expert[one]]:
                entries = replace_entries(items, ranks, kind, expert, copied, dice)
                copied = copied or entries
            rows += [(query, expert, item, rank) for item, rank in entries]
    query_of, expert_of, item_of, rank_of = (list(column) for column in zip(*rows, strict=True))
    return Preferences.from_rows(query_of, expert_of, item_of, rank=rank_of, unlisted=preferences.unlisted)


def replace_entries(
    items: list[Any],
    ranks: list[int],
    kind: str,
    expert: Any,
    copied: list[tuple[Any, int]] | None,
    dice: np.random.Generator,
) -> list[tuple[Any, int]]:
    """Items and ranks in the list of a bad expert."""
    if kind == "short":
        return list(zip(items[-3:], range(1, 4), strict=False))
    if kind == "copied" and copied is not None:
        return copied
    if kind == "reversed":
        items = items[::-1]
    elif kind == "junk":
        items = [f"junk {expert} {k}" for k in range(len(items))]
    else:
        items = [items[k] for k in dice.permutation(len(items))]
    return list(zip(items, ranks, strict=True))


def measure(method: str, preferences: Preferences, labels: Labels) -> np.ndarray:
    """NDCG@10 by query, in points of 100."""
    found = evaluate(make(method).aggregate(preferences), labels, "ndcg@10")
    return 100 * np.asarray(found["ndcg@10"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=list(REAL), default="development")
    parser.add_argument("--quick", action="store_true", help="one seed, one third of bad experts only")
    parser.add_argument("--spoil", metavar="SET", help="only the made data of this set")
    parser.add_argument("--first", type=int, help="the first seed of the made data")
    parser.add_argument("--draws", type=int, help="the number of seeds of the made data")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [] if options.spoil else measure_real_sets(options)
    rows += measure_spoiled_sets(options)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


def measure_real_sets(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every method on the sets of the part as they are."""
    rows: list[dict[str, Any]] = []
    print(f"{'set':34}" + "".join(f"{name:>13}" for name in (*RIVALS, METHOD)))
    for name in REAL[options.part]:
        preferences, labels = load_set(name, options.data)
        values = {m: float(np.nanmean(measure(m, preferences, labels))) for m in (*RIVALS, METHOD)}
        rows.append({"set": name, **values})
        print(f"{name:34}" + "".join(f"{v:13.2f}" for v in values.values()), flush=True)
    means = [float(np.mean([r[m] for r in rows])) for m in (*RIVALS, METHOD)]
    print(f"{'mean':34}" + "".join(f"{v:13.2f}" for v in means) + "\n")
    return rows


def measure_spoiled_sets(options: argparse.Namespace) -> list[dict[str, Any]]:
    """`rrf`, `rbc` and the method where a share of the experts is replaced; the gap is the mean over the seeds."""
    rows: list[dict[str, Any]] = []
    print(
        f"{'set, kind and share of bad experts':34}{'rrf':>8}{'rbc':>8}{METHOD:>18}{'against the better':>20}"
    )
    first = FIRST_SEED[options.part] if options.first is None else options.first
    sets = SPOILED[options.part]
    for name, usual_draws in (
        {options.spoil: sets.get(options.spoil, 1)}.items() if options.spoil else sets.items()
    ):
        draws = 1 if options.quick else options.draws or usual_draws
        seeds = range(first, first + draws)
        preferences, labels = load_set(name, options.data)
        for kind, share in itertools.product(KINDS, SHARES[1:2] if options.quick else SHARES):
            spoiled = [spoil_experts(preferences, kind, share, seed) for seed in seeds]
            table = np.array(
                [[np.nanmean(measure(m, p, labels)) for m in ("rrf", "rbc", METHOD)] for p in spoiled]
            )
            mean, gap = table.mean(axis=0), table[:, 2] - table[:, :2].max(axis=1)
            rows.append({"set": name, "kind": kind, "share": share, "values": table.tolist()})
            spread = f" +- {gap.std(ddof=1):.1f}" if len(gap) > 1 else ""
            label = f"{name}, {kind} {share:.0%}"
            print(
                f"{label:34}{mean[0]:8.1f}{mean[1]:8.1f}{mean[2]:18.1f}{gap.mean():+14.1f}{spread}",
                flush=True,
            )
    return rows


if __name__ == "__main__":
    main()
