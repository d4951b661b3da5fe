"""What nested choice reaches on MQ2008-agg and MQ2007-agg, and whether `fused` with item features is above LR-logR.

python benchmarks/nested_best.py --data FOLDER --set mq2008-agg [--metric map] [--features]

`auto` among the methods that learn and a few plain rules, five random folds: its held-out mean in points of 100, the
95 % interval, the gain over rrf, and the choice on all queries. With --features (MQ2008-agg alone): `fused` with the 46
item features of MQ2008 against the published LR-logR, the five folds of the set, means over three seeds, and the
p-value of a paired randomization test.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from podium import find_answer, make, read
from podium.core.errors import PodiumWarning
from podium.data.dataset import Dataset
from podium.evaluate import cross_validate
from podium.evaluate.significance import assess_differences
from podium_papers.paper_datasets import load_dataset
from podium_papers.paper_tables import LR_LOG_R

METHODS = (
    "rrf", "rbc", "borda", "quality_weighted", "weighted_rrf", "weighted_borda", "weighted_cps", "svd", "crf",
    "fused", "stack",
)  # fmt: skip
SEEDS = 3


def compare_features(folder: Path) -> None:
    """Print `fused` with item features against LR-logR."""
    data = load_dataset("mq2008-agg", folder)
    features = read(sorted(str(path) for path in (folder / "mq2008").glob("*.txt*"))).features
    described = Dataset(data.preferences, data.labels, features, data.part)
    metrics = ("ndcg@5:letor", "map")
    values = {}
    for name, spec, given in (("LR-logR", LR_LOG_R, data), ("fused, item features", "fused", described)):
        runs = [cross_validate(given, {name: make(spec.replace("(", f"(seed={s}, ") if "(" in spec
                else f"{spec}(seed={s})")}, metrics).pool_folds(name) for s in range(SEEDS)]  # fmt: skip
        values[name] = 100 * np.mean([[run[m] for m in metrics] for run in runs], axis=0)
        print(name, values[name].mean(axis=1).round(2).tolist(), flush=True)
    for metric, d in zip(metrics, values["fused, item features"] - values["LR-logR"], strict=True):
        plain = assess_differences(d[None], test="randomization", level=0.95, seed=0)
        print(f"{metric}: {d.mean():+.2f} [{plain.low[0]:+.2f}, {plain.high[0]:+.2f}], p = {plain.p[0]:.4f}")


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="mq2008-agg", choices=("mq2008-agg", "mq2007-agg"))
    parser.add_argument("--metric", default="ndcg@5:letor")
    parser.add_argument("--features", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", PodiumWarning)
    if options.features:
        compare_features(options.data)
        return
    data = load_dataset(options.set, options.data)
    answer = find_answer(data.preferences, data.labels, metric=options.metric, methods=METHODS, budget=None)
    assert answer.value is not None
    gain = answer.rows[-1]
    print(
        f"{options.set}, {options.metric}: {100 * answer.value:.2f} [{100 * answer.low:.2f}, {100 * answer.high:.2f}], "
        f"{100 * gain.difference:+.2f} [{100 * gain.low:+.2f}, {100 * gain.high:+.2f}] over {gain.name}; "
        f"{answer.config}"
    )
    print(answer.loss)


if __name__ == "__main__":
    main()
