"""Table 1 of the paper on labeled features: its largest and smallest weights, beside those learned here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium_papers.belief_curves import BeliefProblem

__all__ = ["PENALTY", "PUBLISHED_ON", "PUBLISHED_WEIGHTS", "compare_weights"]

PUBLISHED_ON = "mslr-web10k-sample"  # a sample of the published set
PENALTY = 1.0  # of the published table, which also learns from 5,000 queries

PUBLISHED_WEIGHTS: dict[str, dict[str, float]] = {
    "one belief": {
        "BM25 title": 0.547, "sum normalised TF title": 0.469, "mean normalised TF title": 0.469,
        "LMIR.ABS title": 0.403, "LMIR.JM title": 0.370, "max normalised TF title": 0.362,
        "min normalised TF title": 0.299, "VSM title": 0.253, "query terms title": 0.231,
        "query term ratio title": 0.231, "boolean url": -0.015, "length anchor": -0.016, "length body": -0.016,
        "URL length": -0.018, "length whole": -0.018, "length url": -0.023, "outlinks": -0.026,
        "PageRank": -0.033, "SiteRank": -0.054, "length title": -0.164,
    },
    "five beliefs": {
        "PageRank": 0.817, "BM25 anchor": 0.392, "VSM anchor": 0.382, "query term ratio anchor": 0.330,
        "query terms anchor": 0.330, "BM25 title": 0.319, "sum normalised TF anchor": 0.311,
        "mean normalised TF anchor": 0.311, "max normalised TF anchor": 0.270, "quality": 0.263,
        "boolean url": -0.001, "SiteRank": -0.006, "min TF.IDF url": -0.007, "min TF url": -0.008,
        "length body": -0.039, "length whole": -0.040, "length title": -0.092, "URL length": -0.129,
        "length url": -0.131, "URL slashes": -0.134,
    },
}  # fmt: skip


def compare_weights(problem: BeliefProblem, beliefs: str) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """A title and lines: published weights, and those of the published rule on all queries here."""
    import numpy as np

    from podium.methods.feature.belief_weights import grades_for
    from podium.metrics.agreement import spearman_rho
    from podium_papers.belief_curves import BELIEFS

    grades = grades_for(BELIEFS[problem.name][beliefs], problem.features.names, problem.name)
    fitted = problem.learn_weights(np.arange(len(problem)), grades, 0.0, l2=PENALTY)
    learned = dict(zip(map(str, problem.features.names), fitted.weights.tolist(), strict=True))
    published = PUBLISHED_WEIGHTS[beliefs]
    mine = np.array([learned[name] for name in published])
    rho = spearman_rho(mine, np.array(list(published.values())))
    same = sum((learned[name] > 0) == (weight > 0) for name, weight in published.items())
    lines = [(name, f"{weight:+.3f}", f"{learned[name]:+.3f}") for name, weight in published.items()]
    lines.append(("rank correlation", "", f"{rho:.3f}"))
    lines.append(("features with the published sign", "", f"{same} of {len(published)}"))
    return f"table 1, {beliefs}", (("feature", "published", "published rule here"), *lines)
