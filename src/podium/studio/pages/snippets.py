"""Python code for a notebook that reads the data of a project and repeats one of its views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from podium.data.preferences import Form
from podium.studio.form_fields import select_reading_options
from podium.studio.pages.explain_views import choose_pair
from podium.studio.pages.explanation_views import rank_with_factors, resolve_item, resolve_weights
from podium.studio.pages.judge_views import JUDGE, LABELS, QUICK
from podium.studio.pages.view_context import ViewContext, item_texts, resolve_id


def format_snippet(c: ViewContext, spec: str, view: str = "") -> str:
    """Code that reads the same data and repeats a view in the state of the address; without one, the result.

    Data that only the studio has (collected votes, excluded annotators, files read by a plan) are read from
    their download.
    """
    lines = [*_read_data(c), *REPEATED.get(view, _repeat_result)(c, spec)]
    imports = sorted({line for line in lines if line.startswith("from ")})
    return "\n".join(["import podium", *imports, "", *(line for line in lines if line not in imports)])


def _find_files(c: ViewContext) -> list[str]:
    """The files that hold the data as they are here; none if only a download does."""
    in_files = not any(c.work.votes.compute_stamp(c.project.id)) and "plan" not in c.project.options
    return [f.name if f.path is None else f.path for f in c.project.files] if in_files else []


def _format_reading(c: ViewContext) -> str:
    options: dict[str, Any] = select_reading_options(c.project.options)
    return repr(_find_files(c)) + "".join(f", {name}={value!r}" for name, value in options.items())


def _read_data(c: ViewContext) -> list[str]:
    if c.project.kind == "demo" and not any(c.work.votes.compute_stamp(c.project.id)):
        return ["from podium.data.demo import demo", "data = demo()",
                "preferences, labels = data.preferences, data.labels"]  # fmt: skip
    if _find_files(c):
        return ["from podium import formats", f"content = formats.read({_format_reading(c)})",
                "preferences, labels = content.preferences, content.labels"]  # fmt: skip
    return ["from podium import formats", "# the file of “Data as CSV” on the Share page",
            'preferences, labels = formats.read("podium-cleaned.csv").preferences, None']  # fmt: skip


def _make_method(spec: str) -> list[str]:
    if spec.startswith("model:"):
        name = spec.removeprefix("model:")
        return [f'method = podium.load("{name}.podium")  # download it on the Experiments page']
    return [f"method = podium.make({spec!r})"]


def _aggregate(c: ViewContext, spec: str) -> list[str]:
    features = c.select_features(c.work.method(spec)) is not None and bool(_find_files(c))
    return [
        *_make_method(spec),
        f"result = method.aggregate(preferences{', content.features' if features else ''})",
    ]


def _repeat_result(c: ViewContext, spec: str) -> list[str]:
    lines = [*_aggregate(c, spec), "print(result)"]
    if Form.COMPARISON in c.data.preferences.forms and "leaderboard" in c.data.kinds:
        lines += ["", "from podium.analysis.leaderboard import leaderboard"]
        lines += ["board = leaderboard(preferences)", "print(board)"]
    if c.data.labels is not None:
        lines += ["", "from podium.evaluate import evaluate"]
        lines.append('print(evaluate(result, labels, ["ndcg@10", "map"]))')
    return lines


def _repeat_comparison(c: ViewContext, _: str) -> list[str]:
    """The methods of the form; fitted models are files of their own and not part of it."""
    chosen = c.get_values("m") or list(c.work.choose_methods(c.data))
    names = [name for name in chosen if not name.startswith("model:")]
    metrics = list(dict.fromkeys((c.get_value("metric", "ndcg@10"), "ndcg@10", "map")))[:2]
    lines = [
        f"names = {names!r}",
        "results = {name: podium.make(name).aggregate(preferences) for name in names}",
    ]
    if c.data.labels is None:
        return [*lines, "print(*results.values(), sep='\\n')"]
    return [
        *lines,
        "# ties are ranked as trec_eval does",
        'results = {name: result.with_ties("trec", single=True) for name, result in results.items()}',
        f"display(podium.compare(results, labels, {metrics!r}))",
    ]


def _repeat_explanation(c: ViewContext, spec: str) -> list[str]:
    """One item, or one beside another, with the weights of the sliders."""
    _, method, q, factors, places, _ = rank_with_factors(c)
    by_text = {text: item for item, text in item_texts(r.item for r in places).items()}
    item, over = resolve_item(c, "item", by_text, q), resolve_item(c, "over", by_text, q)
    if c.get_value("view") == "explain":
        item, over = choose_pair(c, places, q)
    given = "" if item is None else f", {item!r}"
    given += "" if over is None or over == item else f", over={over!r}"
    lines = _make_method(spec)
    if factors and not spec.startswith("model:"):
        lines = _make_method(repr(method))
    elif factors:
        lines += [f"# the model with these weights: keep them on the page; {factors!r}"]
    return [*lines, f"display(podium.explain(method, preferences, {q!r}{given}))"]


def _repeat_query(c: ViewContext, spec: str) -> list[str]:
    q = c.query()
    return [*_aggregate(c, spec), f"for row in result[{q!r}]:", "    print(row)"]


def _repeat_experts(*_: Any) -> list[str]:
    return ["display(podium.diagnose(preferences, labels))"]


def _repeat_board(c: ViewContext, _: str) -> list[str]:
    lines = [
        "from podium.analysis.leaderboard import leaderboard",
        "board = leaderboard(preferences)",
        "display(board)",
    ]
    if c.get_value("anytime") == "1":
        lines += [
            "from podium.analysis.leaderboard import anytime_leaderboard",
            "display(anytime_leaderboard(board))",
        ]
    control, slice_ = c.get_values("control"), c.get_value("slice")
    if (control or slice_) and _find_files(c):
        names = tuple(dict.fromkeys((*control, *([slice_] if slice_ else []))))
        lines += [
            "from podium.analysis.leaderboard import contextual_leaderboard",
            f"votes = formats.read({_format_reading(c)}, attributes={names!r}).votes",
            f"display(contextual_leaderboard(votes, {control!r}, slices={slice_ or None!r}))",
        ]
    if c.get_value("trust") == "1":
        lines += ["from podium.analysis.leaderboard import assess_tampering"]
        lines += ["display(assess_tampering(board, strict=False))"]
    return lines


def _repeat_annotators(*_: Any) -> list[str]:
    return [
        "from podium.analysis.annotators import annotators",
        "consensus = podium.choose_method(preferences).method.aggregate(preferences)",
        "display(annotators(preferences, consensus, labels=labels))",
    ]


def _repeat_annotator(c: ViewContext, _: str) -> list[str]:
    experts = c.data.preferences.experts
    named = c.get_value("who")
    who = resolve_id(named, experts, "annotator") if named else experts[0]
    return [
        "from podium.analysis.annotators import find_disagreements",
        f"for disagreement in find_disagreements(preferences, {who!r}, 12):",
        "    print(disagreement)",
    ]


def _repeat_panel(c: ViewContext, _: str) -> list[str]:
    gold = c.get_value("gold", LABELS if c.data.labels is not None else "")
    lines, given = ["from podium.analysis.judges import assess_panel"], "None"
    if gold == LABELS:
        given = "labels"
    elif gold.startswith(JUDGE):
        who = resolve_id(gold.removeprefix(JUDGE), c.data.preferences.experts, "judge")
        given = f"preferences.with_experts([{who!r}])"
        lines.append(f"judges = preferences.without_expert({who!r})")
    of = "judges" if gold.startswith(JUDGE) else "preferences"
    rules = "" if c.get_value("rules") == "all" else f", rules={QUICK!r}"
    error = c.get_whole_number("error", 10, 1, 49) / 100
    return [*lines, f"display(assess_panel({of}, {given}{rules}, error={error}))"]


def _repeat_deployment(c: ViewContext, spec: str) -> list[str]:
    _, method, _ = resolve_weights(c)
    weights = method.weights if method.weights is not None else getattr(method, "weights_", None)
    experts = "" if isinstance(weights, Mapping) else ", experts=preferences.experts.tolist()"
    to, depth = c.get_value("to", "qdrant"), c.get_whole_number("depth", 100, 1, 10_000)
    call = f"podium.deploy(method, {to!r}{experts}, depth={depth}, nearest=True)"
    return [*_make_method(spec), f"print({call}.config)"]


# the views whose content a few lines repeat
REPEATED: dict[str, Callable[[ViewContext, str], list[str]]] = {
    "overview": _repeat_comparison,
    "methods": _repeat_comparison,
    "differences": _repeat_comparison,
    "queries": _repeat_comparison,
    "fuse": _repeat_result,
    "query": _repeat_query,
    "explain": _repeat_explanation,
    "why": _repeat_explanation,
    "experts": _repeat_experts,
    "leaderboard": _repeat_board,
    "annotators": _repeat_annotators,
    "worker": _repeat_annotator,
    "judges": _repeat_panel,
    "deploy": _repeat_deployment,
}
