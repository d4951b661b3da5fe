"""How much do spammers spoil a consensus? Random and malicious ones are added to a real crowd.

python benchmarks/robustness.py --data FOLDER [--set mirex2005] [--draws 20] [--quick] [--json FILE] [--plot NAME]

In every query spammers are added, 0 to 100 % of its annotators in steps of 5 %, several draws each; a spammer judges
the pairs of an annotator drawn by lot, by lot or against the labels. Printed are the means of the metrics by share of
spammers, and the coefficients of variation over the shares, as Niu et al. (CIKM 2015, figures 3 and 4) report them. The
published coefficients, on experts' labels that are not at hand, are beside those of MIREX 2005. With --plot NAME two
figures, NAME-random.svg and NAME-malicious.svg, are drawn.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium import make
from podium.data.dataset import Dataset
from podium.evaluate import evaluate, judged_only
from podium.testing.crowds import add_spammers
from podium_papers.paper_datasets import load_dataset

KINDS = ("random", "malicious")
METRICS = {"reading-level": ("pairs",)}
DEFAULT_METRICS = ("ndcg@10:exp", "rbp(p=0.95)")
METHODS = {
    "GreedyOrder": "greedy",
    "CondorcetFuse": "condorcet",
    "Bradley-Terry": "bradley_terry",
    "MPM": "mpm(adherence=True, pooled=True)",
    "Crowd-BT": "crowd_bt",
    "EM-Elo": "em_elo",
    "CrowdAgg-NDCG": "crowdagg",
    "CrowdAgg-NDCG-eq": "crowdagg(quality=none)",
    "CrowdAgg-NDCG even": "crowdagg(unjudged=even, prior_agree=3, prior_disagree=1)",
    "CrowdAgg-RBP votes": "crowdagg(measure=rbp, unjudged=even, pair=vote, prior_agree=3, prior_disagree=1)",
    "Dawid-Skene": "dawid_skene",
    "Net votes": "net_votes",
}
# coefficients of variation of NDCG@10 and RBP, in the order of the first seven methods
PUBLISHED = {
    "random": (
        (0.0147, 0.0174, 0.3347, 0.0228, 0.0406, 0.3238, 0.0216),
        (0.0227, 0.0245, 0.0436, 0.0330, 0.0312, 0.0191, 0.0185),
    ),
    "malicious": (
        (0.0100, 0.0122, 0.0112, 0.0186, 0.0498, 0.0175, 0.0099),
        (0.0118, 0.0174, 0.0218, 0.0407, 0.0382, 0.0275, 0.0116),
    ),
}


def one(data: Dataset, methods: Mapping[str, str], metrics: Sequence[str]) -> dict[str, list[float]]:
    """Every method on one crowd."""
    assert data.labels is not None
    out = {}
    for name, spec in methods.items():
        found = judged_only(make(spec).aggregate(data.preferences), data.labels)
        out[name] = list(evaluate(found, data.labels, metrics).mean().values())
    return out


def run(
    data: Dataset,
    kind: Any,
    shares: Sequence[float],
    draws: int,
    methods: Mapping[str, str],
    metrics: Sequence[str],
) -> list[dict[str, Any]]:
    """Means over draws, by method and share of spammers."""
    rows = []
    for share in shares:
        begin, found = time.perf_counter(), []
        for draw in range(draws if share else 1):
            crowd = add_spammers(data.preferences, share, kind, draw, data.labels)
            found.append(one(Dataset(crowd, data.labels), methods, metrics))
        for name in methods:
            means = np.mean([f[name] for f in found], axis=0).tolist()
            rows.append(
                {"kind": kind, "share": share, "method": name, **dict(zip(metrics, means, strict=True))}
            )
        print(f"  {kind}, {share:.0%}: {time.perf_counter() - begin:.1f} s", flush=True)
    return rows


def variation(rows: Sequence[Mapping[str, Any]], kind: str, method: str, metric: str) -> float:
    """The standard deviation over shares of spammers, over the mean."""
    values = np.array([r[metric] for r in rows if (r["kind"], r["method"]) == (kind, method)])
    return float(values.std() / values.mean())


def report(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str], published: bool) -> None:
    """Tables by kind of spammer: the metrics at some shares, and their variation."""
    names = list(dict.fromkeys(r["method"] for r in rows))
    shares = sorted({r["share"] for r in rows})
    shown = [s for s in shares if round(s * 100) % 25 == 0]
    for kind in KINDS:
        for at, metric in enumerate(metrics):
            head = "".join(f"{s:>8.0%}" for s in shown)
            print(f"\n{kind} spammers, {metric:<14}{head}   variation{'   published' if published else ''}")
            for place, name in enumerate(names):
                by_share = {r["share"]: r[metric] for r in rows if (r["kind"], r["method"]) == (kind, name)}
                cells = "".join(f"{by_share[s]:>8.4f}" for s in shown)
                line = f"  {name:<30}{cells}   {variation(rows, kind, name, metric):>9.4f}"
                if published and place < len(PUBLISHED[kind][at]):
                    line += f"   {PUBLISHED[kind][at][place]:>9.4f}"
                print(line)


def draw(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str], name: str) -> None:
    """One figure a kind of spammer, one panel a metric."""
    from podium.evaluate.charts import import_altair, save_chart

    alt = import_altair()
    for kind in KINDS:
        panels = []
        for metric in metrics:
            values = [
                {"method": r["method"], "share": r["share"], "value": r[metric]}
                for r in rows
                if r["kind"] == kind
            ]
            chart = alt.Chart(alt.Data(values=values)).mark_line(point=True)
            x = alt.X("share:Q", axis=alt.Axis(format="%"), title=f"{kind} spammers added")
            y = alt.Y("value:Q", scale=alt.Scale(zero=False), title=metric)
            panels.append(
                chart.encode(x=x, y=y, color=alt.Color("method:N", title=None)).properties(width=300)
            )
        save_chart(alt.hconcat(*panels), f"{name}-{kind}.svg")
        print(f"{name}-{kind}.svg drawn")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="folder with the data sets")
    parser.add_argument(
        "--set", default="mirex2005", choices=("mirex2005", "reading-level", "trec2011-crowd")
    )
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--only", action="append", choices=METHODS, help="a method; may be repeated")
    parser.add_argument("--quick", action="store_true", help="steps of 25 %%, two draws")
    parser.add_argument("--json", help="file for all figures")
    parser.add_argument("--plot", help="beginning of the names of the figures")
    options = parser.parse_args()
    data = load_dataset(options.set, options.data)
    shares = np.round(np.linspace(0, 1, 5 if options.quick else 21), 2).tolist()
    draws = 2 if options.quick else options.draws
    methods = {n: s for n, s in METHODS.items() if not options.only or n in options.only}
    metrics = METRICS.get(options.set, DEFAULT_METRICS)
    rows = [row for kind in KINDS for row in run(data, kind, shares, draws, methods, metrics)]
    report(rows, metrics, published=options.set == "mirex2005" and not options.only)
    if options.json:
        Path(options.json).write_text(
            json.dumps({"set": options.set, "draws": draws, "rows": rows}, indent=1)
        )
    if options.plot:
        draw(rows, metrics, options.plot)


if __name__ == "__main__":
    main()
