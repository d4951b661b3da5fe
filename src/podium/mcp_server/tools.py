"""The tools: functions from plain arguments to an answer. Annotations and docstrings describe them to the model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Annotated, Any, NamedTuple

from podium.core.errors import ParameterError
from podium.core.settings import LeaderboardSettings, TieRule
from podium.core.text import format_count
from podium.mcp_server.file_access import MOST_FILES, FileAccess
from podium.mcp_server.tool_inputs import (
    Id,
    build_inline_preferences,
    choose_or_make_method,
    get_labels,
    get_preferences,
    make_method,
    read_content,
    read_labels,
    resolve_id,
    select_features,
)

__all__ = ["TOOLS", "ToolAnswer"]

Files = Annotated[list[str], "Files below the server's folders, or patterns such as runs/*.run."]
Qrels = Annotated[str | None, "File of judgements; not needed where the input holds them (LETOR)."]
Metrics = Annotated[list[str], "Metrics such as ndcg@10, map, mrr, p@10, recall@100."]
Method = Annotated[
    str,
    "A method such as 'rrf(k=20)', see podium://methods, a .podium model file, or auto: by the form of the input.",
]
Methods = Annotated[
    list[str] | None, "Methods such as 'combmnz(normalizer=zscore)', .podium model files, or auto."
]
Weights = Annotated[dict[str, float] | None, "Weight of each expert by name."]
Format = Annotated[str | None, "Format of the files; detected by default."]
Options = Annotated[
    dict[str, Any] | None, 'Reading options such as {"duplicates": "first", "query": "topic"}.'
]
Output = Annotated[str | None, "New file to write; needs a server that was started with --write."]


class ToolAnswer(NamedTuple):
    """What a tool returns: a few sentences, and the whole result as plain values."""

    text: str
    document: dict[str, Any]


def list_files(
    access: FileAccess, folder: Annotated[str, "Subfolder to list; all folders by default."] = ""
) -> ToolAnswer:
    """List the files that the other tools can open, with their sizes."""
    files = list(islice(access.list_files(folder), MOST_FILES + 1))
    more = len(files) > MOST_FILES
    listed = [{"file": path, "bytes": size} for path, size in files[:MOST_FILES]]
    text = f"{format_count(len(listed), 'file')}{'; there are more, name a subfolder' if more else ''}"
    return ToolAnswer(f"{text}.", {"files": listed, "complete": not more, "writable": access.write})


def check_files(
    access: FileAccess, files: Files, qrels: Qrels = None, format: Format = None, options: Options = None
) -> ToolAnswer:
    """Check files before using them: formats, counts, and warnings about unmatched ids, reversed or copied lists."""
    from podium import formats
    from podium.analysis.experts import diagnose

    content = read_content(access, files, format, options)
    preferences = content.preferences
    detected = {str(path): format or formats.sniff(path) for path in access.resolve_files(files)}
    document: dict[str, Any] = {"formats": detected, "holds": sorted(content.parts)}
    if preferences is None:
        return ToolAnswer(f"The files hold {', '.join(sorted(content.parts))}.", document)
    labels = read_labels(access, content, qrels)
    diagnosis = diagnose(preferences, labels)
    document |= {
        "queries": len(preferences),
        "items": len(preferences.index.items),
        "experts": preferences.experts.tolist(),
        "forms": sorted(form.value for form in preferences.forms),
        "judged_queries": diagnosis.judged_queries,
        "diagnosis": diagnosis.to_dict()["experts"],
        "warnings": list(diagnosis.warnings),
        "reading": diagnosis.reading,
    }
    return ToolAnswer("\n".join([f"{preferences!r}: {diagnosis.headline()}.", *diagnosis.warnings]), document)


def fuse(
    access: FileAccess,
    files: Annotated[
        list[str] | None, "Runs, ratings or votes below the server's folders, or patterns."
    ] = None,
    lists: Annotated[
        dict[str, list[Id] | dict[str, float]] | list[list[Id] | dict[str, float]] | None,
        "Instead of files: the lists of one query by expert name, each best first or scores by item; "
        "lists without names are called list 1, list 2, and so on.",
    ] = None,
    method: Method = "auto",
    weights: Weights = None,
    query: Annotated[Id | None, "Only this query."] = None,
    top: Annotated[int, "Items per query in the answer; the output file has all."] = 10,
    queries: Annotated[int, "Queries in the answer; the output file has all."] = 20,
    output: Output = None,
    format: Format = None,
    options: Options = None,
) -> ToolAnswer:
    """Fuse rankings into one consensus per query: of files, or of lists that are given inline."""
    from podium import formats
    from podium.data.unlisted_rule import describe_unlisted_rule

    if (files is None) == (lists is None):
        raise ParameterError("give either files or lists")
    if top < 1 or queries < 1:
        raise ParameterError(f"top is {top} and queries is {queries}; accepted: whole numbers from 1")
    target = None if output is None else access.resolve_new_file(output)
    content = None if lists is not None else read_content(access, files or [], format, options)
    given = build_inline_preferences(lists, options) if content is None else get_preferences(content)
    made, reasons = choose_or_make_method(access, method, given, weights)
    consensus = made.aggregate(given, select_features(content, made))
    if target is not None:
        formats.write(consensus, target)
    shown = [resolve_id(query, consensus.queries.tolist(), "query")] if query is not None else None
    rankings: list[dict[str, Any]] = []
    for one in shown or consensus.queries[:queries]:
        rows = list(islice(consensus[one], top))
        scores, tied = [float(row.score) for row in rows], [bool(row.tied) for row in rows]
        rankings.append({"query": one, "items": [row.item for row in rows], "scores": scores, "tied": tied})
    notes = [*reasons, *consensus.diagnostics.notes, *filter(None, [describe_unlisted_rule(given)])]
    document = {
        "method": repr(made),
        "queries": len(consensus),
        "rankings": rankings,
        "converged": bool(consensus.diagnostics.converged),
        "notes": notes,
        "file": None if target is None else str(target),
    }
    head = f"{made!r} ranked {format_count(len(consensus), 'query', 'queries')}"
    text = f"{head}; the first items of {rankings[0]['query']}: " if rankings else head
    text += ", ".join(str(item) for item in rankings[0]["items"][:top]) if rankings else ""
    written = [] if target is None else [f"Written to {target}."]
    return ToolAnswer("\n".join([f"{text}.", *written, *notes]), document)


def evaluate(
    access: FileAccess,
    files: Files,
    qrels: Qrels = None,
    metrics: Metrics = ["ndcg@10", "map", "p@10", "mrr"],  # noqa: B006 - never changed, and shown in the schema
    methods: Methods = None,
    ties: Annotated[TieRule, "Order of tied items: item (by id), trec (as trec_eval), or input."] = "trec",
    format: Format = None,
    options: Options = None,
) -> ToolAnswer:
    """Evaluate every run of the files, and methods on them, against judgements as trec_eval does."""
    from podium.evaluate import evaluate as evaluate_result
    from podium.evaluate import expert_rankings

    content = read_content(access, files, format, options)
    preferences, labels = get_preferences(content), get_labels(access, content, qrels)
    results = {str(expert): expert_rankings(preferences, expert) for expert in preferences.experts.tolist()}
    for spec in methods or []:
        made, _ = choose_or_make_method(access, spec, preferences)
        results[spec] = made.aggregate(preferences, select_features(content, made))
    rows: list[dict[str, Any]] = []
    for name, result in results.items():
        evaluation = evaluate_result(
            result.with_ties(ties, single=ties == "trec"), labels, metrics, queries="all"
        )
        counts = {
            "queries": len(evaluation),
            "missing": evaluation.missing,
            "unlabelled": evaluation.unlabelled,
        }
        rows.append({"name": name, "mean": evaluation.mean(), **counts})
    first = next(iter(rows[0]["mean"]))
    rows.sort(key=lambda row: -row["mean"][first])
    lines = [
        f"{row['name']}: {', '.join(f'{metric} {value:.4f}' for metric, value in row['mean'].items())}"
        for row in rows[:10]
    ]
    lines += [f"and {len(rows) - 10} more"] * (len(rows) > 10)
    return ToolAnswer("\n".join(lines), {"metrics": list(rows[0]["mean"]), "results": rows})


def compare(
    access: FileAccess,
    files: Files,
    qrels: Qrels = None,
    methods: Methods = None,
    metrics: Metrics = ["ndcg@10", "map"],  # noqa: B006 - never changed, and shown in the schema
    baseline: Annotated[str | None, "Method or expert to compare with; the first method by default."] = None,
    best_expert: Annotated[bool, "Include the single expert with the best first metric."] = True,
    format: Format = None,
    options: Options = None,
) -> ToolAnswer:
    """Compare methods with a baseline: differences with intervals, Holm-corrected p-values, and what they allow
    to conclude."""
    from podium.evaluate import compare as compare_results
    from podium.evaluate import evaluate as evaluate_result
    from podium.evaluate import expert_rankings
    from podium.evaluate.comparison import usual_methods
    from podium.evaluate.heldout_labels import exclude_fitted_queries
    from podium.evaluate.result_rankings import aggregate_methods
    from podium.metrics.base import parse_all

    first_metric = parse_all(metrics)[0]
    content = read_content(access, files, format, options)
    preferences, labels = get_preferences(content), get_labels(access, content, qrels)
    specs = methods or usual_methods(preferences.forms)
    chosen = {spec: choose_or_make_method(access, spec, preferences) for spec in specs}
    made = {spec: method for spec, (method, _) in chosen.items()}
    reasons = [line for _, lines in chosen.values() for line in lines]
    results, left_out = aggregate_methods(made.items(), preferences, content.features)
    held_out = exclude_fitted_queries(made, labels)
    results = {name: result for name, result in results.items() if name not in held_out.left_out}
    left_out |= held_out.left_out
    singles = {str(e): expert_rankings(preferences, e) for e in preferences.experts.tolist()}
    if best_expert:
        means = {n: evaluate_result(r, held_out.labels, first_metric).mean() for n, r in singles.items()}
        best = max(means, key=lambda name: next(iter(means[name].values())))
        results[best] = singles[best]
    if baseline is not None and baseline in singles:
        results[baseline] = singles[baseline]
    comparison = compare_results(results, held_out.labels, metrics, baseline=baseline)
    document = comparison.to_dict() | {"left_out": left_out, "notes": [*reasons, *held_out.notes]}
    omitted = [f"{name} is left out: {reason}" for name, reason in left_out.items()]
    return ToolAnswer(
        "\n".join([comparison.conclusion(), *reasons, *comparison.notes, *held_out.notes, *omitted]), document
    )


def leaderboard(
    access: FileAccess,
    files: Files,
    settings: Annotated[
        dict[str, Any] | None, "Settings such as {'bootstrap': 1000, 'scale': 'natural', 'ties': 'davidson'}."
    ] = None,
    proposals: Annotated[int, "Number of most informative next comparisons to propose."] = 0,
    format: Format = None,
    options: Options = None,
) -> ToolAnswer:
    """Rank items from pairwise votes: scores with intervals, ranges of ranks, checks, whether to stop voting."""
    from podium.analysis.leaderboard import leaderboard as build_leaderboard
    from podium.core.params import suggest_names

    known = list(LeaderboardSettings.__dataclass_fields__)
    for name in settings or {}:
        if name not in known:
            raise ParameterError(f"a leaderboard has no setting {name!r}; {suggest_names(name, known)}")
    chosen = LeaderboardSettings(**(settings or {}))
    board = build_leaderboard(get_preferences(read_content(access, files, format, options)), settings=chosen)
    stop, reason = board.stopping()
    pairs = [vars(pair) for pair in board.next(proposals)] if proposals else []
    document = board.to_dict() | {"stop": bool(stop), "reason": reason, "next": pairs}
    places = [f"{row.rank}. {row.item} {row.score:.1f}" for row in board.rows[:10]]
    return ToolAnswer("\n".join([board.headline(), *places, board.checks_summary, reason]), document)


def annotators(
    access: FileAccess,
    files: Files,
    gold: Annotated[str | None, "File of gold judgements to measure annotators against."] = None,
    method: Annotated[str, "Consensus method to compare annotators with."] = "auto",
    level: Annotated[float, "Confidence level."] = 0.95,
    format: Format = None,
    options: Options = None,
) -> ToolAnswer:
    """Estimate which annotators are reliable, random or malicious, with intervals; those to check come first."""
    from podium.analysis.annotators import annotators as assess_annotators

    content = read_content(access, files, format, options)
    preferences, labels = get_preferences(content), read_labels(access, content, gold)
    made, reasons = choose_or_make_method(access, method, preferences)
    consensus = made.aggregate(preferences)
    report = assess_annotators(preferences, consensus, labels=labels, times=content.seconds, level=level)
    return ToolAnswer("\n".join([*reasons, *report.lines]), report.to_dict())


def explain(
    access: FileAccess,
    files: Files,
    query: Annotated[Id, "The query."],
    item: Annotated[Id | None, "The item to explain; the first of the consensus by default."] = None,
    over: Annotated[Id | None, "Another item: why it is above or below, and what would swap the two."] = None,
    method: Method = "auto",
    weights: Weights = None,
    format: Format = None,
    options: Options = None,
) -> ToolAnswer:
    """Explain the place of an item: the contribution of each expert, and verified changes that would swap two."""
    from podium.analysis.explain import explain as explain_item

    content = read_content(access, files, format, options)
    preferences = get_preferences(content)
    made, reasons = choose_or_make_method(access, method, preferences, weights)
    chosen = resolve_id(query, preferences.queries.tolist(), "query")
    items = preferences.select([chosen]).index.items.tolist()
    one, other = (None if given is None else resolve_id(given, items, "item") for given in (item, over))
    features = select_features(content, made)
    explanation = explain_item(made, preferences, chosen, one, over=other, features=features)
    return ToolAnswer("\n".join([*reasons, *explanation.lines]), explanation.to_dict())


def tune(
    access: FileAccess,
    files: Files,
    qrels: Qrels = None,
    metric: Annotated[str, "The metric to maximize."] = "ndcg@10",
    methods: Methods = None,
    engine: Annotated[str | None, "Search only what this search engine computes, such as qdrant."] = None,
    trials: Annotated[int, "Configurations to try."] = 100,
    budget: Annotated[float, "Seconds for the search; keep it well below the server's time limit."] = 30.0,
    seed: Annotated[int, "Random seed."] = 0,
    output: Output = None,
    format: Format = None,
    options: Options = None,
) -> ToolAnswer:
    """Choose method, parameters and weights by judgements, with an estimate on held-out queries."""
    from podium import models
    from podium.data.dataset import Dataset
    from podium.evaluate.tuning import tune as tune_methods

    target = None if output is None else access.resolve_new_file(output)
    content = read_content(access, files, format, options)
    data = Dataset(get_preferences(content), get_labels(access, content, qrels), content.features)
    chosen = None if methods is None else [make_method(access, spec) for spec in methods]
    tuning = tune_methods(data, metric, chosen, engine=engine, trials=trials, budget=budget, seed=seed)
    if target is not None:
        models.save(tuning.best, target)
    document = tuning.to_dict() | {"file": None if target is None else str(target)}
    document["trials"] = document["trials"][:10]
    del document["queries"]
    written = [] if target is None else [f"Written to {target}."]
    return ToolAnswer(
        "\n".join([f"{tuning.config}: {tuning.conclusion()}", *tuning.notes, *written]), document
    )


def deploy(
    access: FileAccess,
    method: Method,
    engine: Annotated[
        str, "Such as qdrant, elasticsearch, opensearch, weaviate, milvus, vespa, postgres, duckdb."
    ],
    experts: Annotated[
        dict[str, str] | list[str] | None,
        "The name of each expert in the engine; those of the weights or of the files by default.",
    ] = None,
    weights: Weights = None,
    depth: Annotated[int, "Items of each list that the engine fuses."] = 100,
    nearest: Annotated[bool, "Accept the nearest form if the engine has no exact one."] = False,
    files: Annotated[
        list[str] | None, "Runs on which the engine, emulated, is compared with the method."
    ] = None,
    output: Output = None,
) -> ToolAnswer:
    """Write the configuration of a search engine that ranks as a method or tuned model does, and check its order."""
    from podium.deployment import deploy as deploy_method
    from podium.methods.automatic_choice import fix_weights
    from podium.storage.files import write_atomically

    target = None if output is None else access.resolve_new_file(output)
    runs = None if files is None else get_preferences(read_content(access, files, None, None))
    made, reasons = choose_or_make_method(access, method, runs, weights)
    made = made if runs is None else fix_weights(made, runs)
    named = isinstance(made.weights, dict) or hasattr(made, "weights_")
    names: Any = runs.experts.tolist() if experts is None and runs is not None and not named else experts
    deployment = deploy_method(made, engine, experts=names, depth=depth, nearest=nearest)
    document = {
        "engine": engine,
        "form": deployment.form.describe(),
        "exact": deployment.exact,
        "notes": list(deployment.notes),
        "config": deployment.config,
    }
    lines = [*reasons, repr(deployment), *deployment.notes]
    if runs is not None:
        check = deployment.check(runs)
        document["check"] = {"queries": check.queries, "same": check.same, "same_top": check.same_top}
        lines.append(check.describe())
    if target is not None:
        write_atomically([deployment.config.encode()], target)
        document["file"] = str(target)
        lines.append(f"Written to {target}.")
    return ToolAnswer("\n".join(lines), document)


TOOLS: dict[str, Callable[..., ToolAnswer]] = {
    tool.__name__: tool
    for tool in (
        list_files, check_files, fuse, evaluate, compare, leaderboard, annotators, explain, tune, deploy,
    )
}  # fmt: skip
