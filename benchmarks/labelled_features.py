"""Beliefs about features against labels: a picture of the curves, and how few labels are worth a belief.

python benchmarks/labelled_features.py --data FOLDER [--draws 25] [--plot curve.svg] [--labels --held 10] [--json FILE]

Without --labels: what `podium reproduce labelled-features` computes, by the number of unlabeled queries, and with
--plot as a picture. With --labels: LambdaRank from 1, 2, 5, 10 and 20 labeled queries, with and without what was
learned from one belief as its prior, beside the belief alone; in every draw half of the queries measure.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium import LambdaRank
from podium.evaluate import charts
from podium.methods.feature.belief_weights import grades_for
from podium_papers.belief_curves import BELIEFS, DRAWS, BeliefProblem, compute_curve, load_problem

LABELED = (1, 2, 5, 10, 20)
HELD = 10.0  # the penalty towards the prior, over the number of labeled queries: the more of them, the looser


def curves(problem: BeliefProblem, draws: int, seed: int) -> list[dict[str, Any]]:
    """One line per set of beliefs and number of unlabeled queries."""
    lines = []
    for beliefs in BELIEFS[problem.name]:
        found = compute_curve(problem, beliefs, seed=seed, draws=draws, progress=lambda *_: None)
        lines += [
            {"set": problem.name, "beliefs": beliefs, "queries": p.queries, "ndcg@10": p.quality, "naive": found.naive,
             "gain": p.gain, "low": p.gain - p.error, "high": p.gain + p.error}
            for p in found.points
        ]  # fmt: skip
    return lines


def with_labels(
    problem: BeliefProblem, beliefs: str, draws: int, seed: int, held: float = HELD
) -> list[dict[str, Any]]:
    """Labels only, beliefs only and both, by the number of labeled queries."""
    random, names = np.random.default_rng(seed), problem.features.names
    grades = grades_for(BELIEFS[problem.name][beliefs], names, problem.name)
    found: dict[tuple[int, str], list[float]] = {}
    for _ in range(draws):
        order = random.permutation(len(problem))
        pool, test = order[: len(problem) // 2], order[len(problem) // 2 :]
        believed = problem.learn_weights(np.sort(pool), grades, 0.5).weights
        prior = dict(zip(names, believed.tolist(), strict=True))
        for count in LABELED:
            codes = np.sort(pool[:count])
            given = problem.features.select_codes(codes), problem.labels.select_codes(codes)
            settings: Any = {"normalize": "range", "l2": held / count, "passes": 60}
            weights = {"beliefs only": believed}
            for name, before in (("labels only", None), ("both", prior)):
                model = LambdaRank(**settings, prior=before).fit(*given)
                weights[name] = np.array(list(model.feature_weights().values()))
            for name, w in weights.items():
                found.setdefault((count, name), []).append(float(problem.measure_quality(w)[test].mean()))
    return [
        {"set": problem.name, "beliefs": beliefs, "labelled": count, "from": name, "ndcg@10": float(np.mean(v)),
         "error": float(np.std(v, ddof=1) / np.sqrt(len(v)))}
        for (count, name), v in found.items()
    ]  # fmt: skip


def draw(lines: Sequence[dict[str, Any]], path: str) -> None:
    """The gain over the graded sum, one standard error shaded, a panel for each data set."""
    alt = charts.import_altair()
    panels = []
    for name in dict.fromkeys(line["set"] for line in lines):
        data = alt.Data(values=[line for line in lines if line["set"] == name])
        x = alt.X("queries:Q", scale=alt.Scale(type="log"), title="unlabeled queries")
        base = alt.Chart(data).encode(x=x, color=alt.Color("beliefs:N", title=None))
        band = base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", title="gain in NDCG@10"), y2="high:Q")
        line = base.mark_line(point=True).encode(y="gain:Q")
        zero = alt.Chart(alt.Data(values=[{"y": 0}])).mark_rule(strokeDash=[4, 4]).encode(y="y:Q")
        panels.append((band + line + zero).properties(width=240, height=220, title=name))
    charts.save_chart(alt.hconcat(*panels), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--set", dest="sets", action="append", choices=list(BELIEFS))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--labels", action="store_true")
    parser.add_argument("--beliefs", default="one belief")
    parser.add_argument("--held", type=float, default=HELD)
    parser.add_argument("--plot")
    parser.add_argument("--json")
    asked = parser.parse_args()
    lines: list[dict[str, Any]] = []
    for name in asked.sets or list(BELIEFS):
        problem = load_problem(name, asked.data)
        if asked.labels:
            lines += with_labels(problem, asked.beliefs, asked.draws, asked.seed, asked.held)
        else:
            lines += curves(problem, asked.draws, asked.seed)
    print("\t".join(lines[0]))
    for line in lines:
        print("\t".join(f"{v:.4f}" if isinstance(v, float) else str(v) for v in line.values()))
    if asked.json:
        Path(asked.json).write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    if asked.plot and not asked.labels:
        draw(lines, asked.plot)


if __name__ == "__main__":
    main()
