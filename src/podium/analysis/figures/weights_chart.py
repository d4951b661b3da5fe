"""Learned weights by expert as a matrix (Volkovs & Zemel, CIKM 2013, figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.analysis.figures.heatmap import build_slanted_axis, disambiguate_names, natural_sort_key
from podium.core.errors import ParameterError
from podium.data.consensus import Consensus
from podium.data.ids import Id
from podium.evaluate import charts
from podium.methods.base import Aggregator

__all__ = ["weight_matrix", "weight_table"]

WeightsByKind = dict[str, dict[Id, float]]
EXPERTS = 120  # experts drawn, largest weights first
WIDTH = 640
AGAINST, NOTHING, FOR = "#b35806", "#f7f7f7", "#2166ac"
VIEWS = (
    "vector for",
    "vector against",
    "not listed",
    "preferred",
    "beaten",
    "top ranks",
    "log rank",
    "place",
)
RANK_VIEWS = ("not listed", "top ranks", "log rank", "place")


def weight_table(model: Aggregator | Consensus | Mapping[Id, float]) -> WeightsByKind:
    """Weights by kind and expert; a single kind for methods with one weight per expert.

    >>> from podium import Labels, Preferences, make
    >>> p = Preferences.from_lists({"q": {"good": ["a", "b"], "bad": ["b", "a"]}})
    >>> list(weight_table(make("crf").fit(p, Labels.from_dict({"q": {"a": 1, "b": 0}}))))
    ['not listed', 'preferred', 'beaten']
    """
    if isinstance(model, Mapping):
        return {"weight": dict(model)}
    if isinstance(model, Consensus):
        given, experts = model.expert_weights, model.experts
        if given is None or experts is None:
            raise ParameterError(f"{model.method or 'this result'} has no weights by expert")
        return {"weight": dict(zip(experts.tolist(), given.tolist(), strict=True))}
    from podium.learning.feature_scorer import FeatureScorer
    from podium.methods.learned.crf import CrfAggregator
    from podium.methods.learned.fused import FusedAggregator
    from podium.methods.learned.svd_features import SvdAggregator

    is_fitted = hasattr(model, "experts_")
    if is_fitted and isinstance(model, CrfAggregator):
        rows = model.expert_weights()
        # being preferred to an item counts against it
        signs = {name: -1.0 if name.startswith("beaten") else 1.0 for name in rows[0].weights}
        return {
            name.replace("absence", "not listed"): {r.expert: sign * r.weights[name] for r in rows}
            for name, sign in signs.items()
        }
    if is_fitted and isinstance(model, SvdAggregator | FusedAggregator) and model.explains_exactly:
        # models of earlier versions have all views
        kinds = list(RANK_VIEWS if getattr(model, "views_", "all") == "ranks" else VIEWS)
        names = model.experts_
        if isinstance(model, SvdAggregator):
            count, names = model.components, model._group_names()
            numbers = [""] if count == 1 else [f" {n + 1}" for n in range(count)]
            kinds = [f"vector {way}{number}" for number in numbers for way in ("for", "against")]
            kinds.append("not listed")
        # the weights are ordered by kind, then by expert
        values, n = FeatureScorer.from_model(model).linear_weights.tolist(), len(names)
        return {k: dict(zip(names, values[i * n : (i + 1) * n], strict=True)) for i, k in enumerate(kinds)}
    # rankers of features have none
    weights = getattr(model, "weights_", None) if is_fitted else vars(model).get("weights")
    if not isinstance(weights, Mapping):
        raise ParameterError(
            f"{model!r} has no weights by expert; fitted crf, fused, svd and weighted_* models have them"
        )
    return {"weight": dict(weights)}


def weight_matrix(
    models: Aggregator | Consensus | Mapping[str, Aggregator | Consensus], *, experts: int = EXPERTS
) -> Any:
    """An Altair chart: experts across, kinds of weights down, one block per model (such as one per fold).

    Colors are shares of the largest weight of a kind in a model: blue counts for an item, orange against it.
    """
    alt = charts.import_altair()
    named = {repr(models): models} if isinstance(models, Aggregator) else models
    named = {named.method: named} if isinstance(named, Consensus) else named
    tables = {name: weight_table(model) for name, model in named.items()}
    # the experts with the largest weights, relative to the largest of a kind
    size: dict[Id, float] = {}
    for table in tables.values():
        for weights in table.values():
            largest = max(map(abs, weights.values()), default=0.0) or 1.0
            for expert, value in weights.items():
                size[expert] = max(size.get(expert, 0.0), abs(value) / largest)
    kept = sorted(size, key=lambda e: -size[e])[:experts]
    names = zip(kept, disambiguate_names(kept), strict=True)
    across = dict(sorted(names, key=lambda pair: natural_sort_key(pair[1])))
    blocks = [
        _draw_block(alt, table, across, name, named=n == 0) for n, (name, table) in enumerate(tables.items())
    ]
    title = {
        "text": "What was learned about each expert",
        "subtitle": "share of the largest weight of its kind; + counts for an item, - against it",
        "anchor": "start",
    }
    chart = alt.vconcat(*blocks, spacing=6, title=title).resolve_scale(color="shared", x="shared")
    return chart.configure_view(stroke=None).configure_axis(grid=False)


def _draw_block(alt: Any, table: WeightsByKind, across: Mapping[Id, str], name: str, *, named: bool) -> Any:
    cells = []
    for kind, weights in table.items():
        largest = max(map(abs, weights.values()), default=0.0) or 1.0
        for expert, shown in across.items():
            value = weights.get(expert)
            if value is not None:
                share = value / largest
                sign = "" if abs(share) < 0.2 else "+" if share > 0 else "\u2212"
                cells.append({"kind": kind, "expert": shown, "weight": value, "share": share, "sign": sign})
    width = max(7, min(24, WIDTH // max(len(across), 1)))
    top = build_slanted_axis(alt, width)
    base = alt.Chart(alt.Data(values=cells)).encode(
        x=alt.X("expert:N", sort=list(across.values()), title=None, axis=top if named else None),
        y=alt.Y(
            "kind:N", sort=list(table), title=name,
            axis=alt.Axis(
                ticks=False, domain=False, labelLimit=130, titleAngle=0, titleAlign="right", titleLimit=150,
                titlePadding=8,
            ),
        ),
    )  # fmt: skip
    legend = alt.Legend(title=None, orient="bottom", gradientLength=180, values=[-1, 0, 1])
    scale = alt.Scale(domain=[-1, 0, 1], range=[AGAINST, NOTHING, FOR], interpolate="rgb")
    tooltip = ["expert:N", "kind:N", alt.Tooltip("weight:Q", format=".4g")]
    rects = base.mark_rect(stroke="white", strokeWidth=1).encode(
        color=alt.Color("share:Q", scale=scale, legend=legend), tooltip=tooltip
    )
    ink = alt.condition("abs(datum.share) > 0.6", alt.value("white"), alt.value("#1a1a1a"))
    text = base.mark_text(fontSize=10).encode(text="sign:N", color=ink)
    return (rects + text).properties(width={"step": width}, height={"step": 18})
