"""podium fit: Train a model on judgements and save it."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli._method import (
    AUTO,
    MethodChoice,
    describe_failed_check,
    find_learner,
    match_weights,
    refuse_budget,
    with_budget,
    with_method,
    with_save_anyway,
)
from podium.cli._options import add_option, add_options
from podium.cli._progress import progress_bar, show_status
from podium.cli._shards import TRAINING, ShardOptions, refuse_options, with_shards
from podium.cli.input import FILES, Input, with_input
from podium.cli.output import Output, echo_note, format_number, print_json, print_table, with_output
from podium.core.errors import ParameterError

if TYPE_CHECKING:
    from podium.data.dataset import Dataset
    from podium.evaluate.gain_check import GainCheck
    from podium.learning.training_shards import ShardFiles
    from podium.methods.base import Aggregator
    from podium.storage.shards import Shard

ENOUGH = 25  # labeled queries from which a validation share is held out by default
SHARE = 0.2
METRIC = "ndcg@10"


@click.command(name="fit")
@add_options(Input, "qrels")
@with_method(
    "A method, such as svd or 'rrf(k=20)', or auto: chosen by the judgements, or without any by the form of the input.",
    "Expert weights, for a method that supports them.",
    required=True,
)
@click.option(
    "--validation",
    type=FILES,
    multiple=True,
    help="Validation input with other queries, for model selection; may be repeated.",
)
@click.option("--validation-share", type=click.FloatRange(0, 1, max_open=True), help="Share of the judged queries "
              f"held out for validation.  [default: {SHARE} if there are {ENOUGH} or more, else 0]")  # fmt: skip
@add_options(Input, "features")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the validation split."
)
@with_budget
@with_save_anyway
@add_option(Output, "path", "The model file to write, such as m.podium.", type=click.Path(), required=True)
@add_options(Output, "overwrite")
@with_shards(*TRAINING)
@with_input
@with_output
def verb(
    source: Input,
    choice: MethodChoice,
    validation: tuple[str, ...],
    validation_share: float | None,
    seed: int,
    budget: float | None,
    save_anyway: bool,
    output: Output,
    how: ShardOptions,
) -> None:
    """Train a model on judgements and save it.

    A model that is worse than rrf or than the best expert by more than one standard error, on its validation
    queries or in cross-validation where there are none, is not saved unless --save-anyway is given.

    \b
    podium fit *.run --qrels qrels.txt -m auto -o model.podium
    podium fit *.run --qrels qrels.txt -m svd -o model.podium
    podium fit A1.txt A2.txt A3.txt --validation A4.txt -m svd -p transform=log -o model.podium
    podium apply model.podium new/*.run -o fused.run
    podium fit --shards train/*.parquet --validation vali/ -m lambdarank -o model.podium
    """
    from podium import models
    from podium.data.dataset import Dataset
    from podium.evaluate import holdout

    output.check()
    if validation and validation_share is not None:
        raise click.UsageError("give --validation or --validation-share, not both")
    if choice.spec != AUTO:
        refuse_budget(budget)
    facts: dict[str, Any] = {"model": output.path}
    model: Any
    if how.is_requested([*source.files, *validation]):
        refuse_options(features=source.features, validation_share=validation_share, seed=seed)
        model, learned = choice.make_streaming(), True
        facts |= _fit_shards(model, source, validation, how)
    elif choice.spec == AUTO:
        if validation or validation_share is not None:
            raise click.UsageError("auto cross-validates; leave --validation and --validation-share out")
        facts |= _choose_model(choice, source, budget, save_anyway)
        model = facts.pop("chosen")
        learned = model.tags.supervised
    else:
        model = _make_model(choice, source)
        learned = model.tags.supervised
        labels = source.labels if learned or source.qrels else source.content.labels
        data = Dataset(source.preferences, labels, source.features_of(model))
        held: Dataset | None
        if validation:
            held = _read_validation(model, dataclasses.replace(source, files=validation), data)
        else:
            if validation_share is None:
                validation_share = SHARE if learned and _count_labeled_queries(data) >= ENOUGH else 0.0
            data, held = holdout(data, validation_share, seed) if validation_share else (data, None)
        facts |= _fit_and_measure(model, data, held)
        if learned:
            facts |= _check_gain(model, data, held, seed, save_anyway)
    models.save(model, facts["model"], overwrite=output.overwrite)
    if output.json:
        print_json(facts)
    elif choice.spec == AUTO:
        print_table(["fact", "value"], [("method", facts["method"]), ("saved as", facts["model"])], left=2)
    else:
        _print_summary(facts, learned)


def _choose_model(
    choice: MethodChoice, source: Input, budget: float | None, save_anyway: bool
) -> dict[str, Any]:
    """What `auto` chooses by the judgements, or by the form of the input where there are none."""
    if source.optional_labels is None:
        from podium.methods.automatic_choice import fix_weights

        refuse_budget(budget)
        chosen = choice.make_for(source)
        model = fix_weights(chosen, source.preferences)
        saved = "" if model is chosen else f" Saved is {model.name} with the weights of these lists."
        echo_note(f"Without judgements nobody can say how good it is.{saved}")
        return {"chosen": model, "method": repr(model)}
    answer = choice.find_answer(source, budget)
    model = answer.method
    _refuse_worse(answer.gain_check, repr(model), save_anyway)
    passes = getattr(model, "passes_", None)
    return {"chosen": model, "method": repr(model), "answer": answer.to_dict(), "passes": passes}


def _make_model(choice: MethodChoice, source: Input) -> Any:
    """The method to fit, without anything learned."""
    try:
        method = choice.make()
    except ParameterError:
        if find_learner(choice.spec) is None:
            raise
        raise ParameterError(
            f"{choice.spec} learns from item features alone; give one or more feature files as shards (--shards)"
        ) from None
    return dataclasses.replace(match_weights(method, source.preferences))


def _check_gain(
    model: Any, train: Dataset, held: Dataset | None, seed: int, save_anyway: bool
) -> dict[str, Any]:
    """Compare the model with rrf and the best expert; refuse a worse one unless asked to save it anyway."""
    from podium.evaluate.gain_check import cross_validate_gain, measure_gain

    if held is None and save_anyway:
        return {}
    with show_status("comparing the model with rrf and the best expert"):
        check = cross_validate_gain(model, train, seed) if held is None else measure_gain(model, train, held)
    _refuse_worse(check, model.name, save_anyway)
    return {} if check is None else {"gain": dataclasses.asdict(check)}


def _refuse_worse(check: GainCheck | None, name: str, save_anyway: bool) -> None:
    if not save_anyway and (problem := describe_failed_check(check, name)):
        raise ParameterError(problem)


def _fit_shards(model: Any, source: Input, validation: Sequence[str], how: ShardOptions) -> dict[str, Any]:
    """Train a model on shards; return the facts to report."""
    if how.cache is not None and how.no_cache:
        raise click.UsageError("give --cache or --no-cache, not both")
    begin = time.perf_counter()
    train, check = _find_shard_files(source, validation)
    cache = not how.no_cache if how.cache is None else how.cache
    with progress_bar() as progress:
        model.fit_stream(train, validation=check, cache=cache, progress=progress)
    quality = model.quality_ if isinstance(model.quality_, list) else [model.quality_]
    measured = {"metric": str(model.choose_by), "quality": sum(quality) / len(quality)} if check else {}
    facts = {
        "method": repr(model),
        **model.shard_counts._asdict(),
        "passes": model.passes_,
        "seconds": round(time.perf_counter() - begin, 3),
    }
    return facts | measured


def _find_shard_files(source: Input, validation: Sequence[str]) -> tuple[list[ShardFiles], list[ShardFiles]]:
    """The training and validation shards, with the labels outside them.

    `--qrels` is one file for all shards, or a folder of files named like the shards.
    """
    from podium.learning.training_shards import ShardFiles, SharedLabels
    from podium.storage.shards import find_shards

    if not source.files:
        raise click.UsageError("no shards; give files or folders of them")
    options, qrels = source.reading, source.qrels
    by_shard: dict[str, str] | None = None
    if qrels is not None and os.path.isdir(qrels):
        by_shard = {}
        for shard in find_shards(qrels):
            name = Path(shard.name).name
            if other := by_shard.get(name):
                both = f"{other} and {shard.path}"
                raise ParameterError(f"{both} could both be the labels of shard {name!r}; keep one")
            by_shard[name] = shard.path
    shared = None if qrels is None or by_shard is not None else SharedLabels(qrels)

    def build_files(shard: Shard) -> ShardFiles:
        labels = shared if by_shard is None else by_shard.get(Path(shard.name).name)
        if by_shard is not None and labels is None:
            raise ParameterError(
                f"{qrels} contains no labels for the shard {shard.path}; add a file of that name"
            )
        return ShardFiles((shard.path,), source.format, options, labels)

    train, check = find_shards(source.files), find_shards(validation) if validation else []
    return [build_files(s) for s in train], [build_files(s) for s in check]


def _fit_and_measure(model: Any, train: Dataset, held: Dataset | None) -> dict[str, Any]:
    """Fit the model and return the facts to report."""
    begin = time.perf_counter()
    data = train.preferences, train.labels, train.features
    if model.tags.supervised:
        with progress_bar() as progress:
            model.fit(*data, validation=held, progress=progress)
        # the comparison with an unsupervised baseline on the validation queries, if there were any
        measured: dict[str, Any] = getattr(model, "validation_", {})
        quality: dict[str, Any] = {"verdict": "not measured"}
        if measured:
            quality = {k: measured[k] for k in ("metric", "baseline", "before", "after")}
            verdict = _choose_verdict(quality["before"], quality["after"])
            quality |= {"measured_on": "validation", "verdict": verdict}
    else:
        model.fit(*data)
        quality = _measure_unsupervised(model, train)
    return {
        "method": repr(model),
        "fingerprint": train.preferences.fingerprint,
        "queries": _count_labeled_queries(train),
        "validation_queries": 0 if held is None else _count_labeled_queries(held),
        "passes": getattr(model, "passes_", None),
        "seconds": round(time.perf_counter() - begin, 3),
        **quality,
    }


def _read_validation(model: Aggregator, source: Input, data: Dataset) -> Dataset:
    """Validation data from separate files; training queries must not be among them."""
    from podium.data.dataset import Dataset

    preferences = source.preferences
    known = set(data.preferences.queries)
    both = [q for q in preferences.queries if q in known]
    if both:
        raise ParameterError(
            f"query {both[0]!r} is in both the input and --validation; validate on queries not used for training"
        )
    return Dataset(preferences, source.labels, source.features_of(model))


def _count_labeled_queries(data: Dataset) -> int:
    from podium.evaluate.splits import find_labeled_queries

    return int(find_labeled_queries(data).sum())


def _measure_unsupervised(model: Aggregator, data: Dataset) -> dict[str, Any]:
    """Compare a method fitted without labels, for which all labeled queries are held out; and its notes."""
    from podium.evaluate import evaluate
    from podium.methods.learned.baseline_comparison import make_baseline

    consensus = model.aggregate(data.preferences, data.features)
    notes = {"notes": list(consensus.diagnostics.notes)} if consensus.diagnostics.notes else {}
    if data.labels is None or not _count_labeled_queries(data):
        return notes
    plain = make_baseline(data)
    results = plain.aggregate(data.preferences), consensus
    before, after = (evaluate(c, data.labels, METRIC).mean()[METRIC] for c in results)
    return {
        "metric": METRIC,
        "measured_on": "judged",
        "baseline": plain.name,
        "before": before,
        "after": after,
        "verdict": _choose_verdict(before, after),
        **notes,
    }


def _choose_verdict(before: float, after: float) -> str:
    return "worse" if after < before - 1e-12 else "not worse"


def _print_summary(facts: dict[str, Any], learned: bool) -> None:
    rows = [("method", facts["method"])]
    if learned:
        of, of_held = (
            f" of {facts[name]:,} shard(s)" if name in facts else ""
            for name in ("shards", "validation_shards")
        )
        chooses = facts["passes"] is not None  # without passes there is nothing to select
        held = facts["validation_queries"]
        rows.append(("trained on", f"{facts['queries']:,} judged queries{of} in {facts['seconds']:.1f} s"))
        if facts.get("validation_shards", held):
            rows.append(
                ("validated on" if chooses else "held out", f"{held:,} other judged queries{of_held}")
            )
        elif chooses:
            rows.append(("validated on", "nothing: the last pass was kept"))
    if facts["passes"] is not None:
        rows.append(("passes kept", ", ".join(map(str, facts["passes"]))))
    if "metric" in facts:
        where = f"{facts['metric']} on {facts.get('measured_on', 'validation')} queries"
        if (baseline := facts.get("baseline")) is not None:
            rows.append((f"{where}, {baseline}", format_number(facts["before"])))
        value = facts["quality"] if "quality" in facts else facts["after"]
        rows.append((f"{where}, this model", format_number(value)))
        if facts.get("verdict") == "worse":
            advice = f"use {baseline}, label more queries, or see `podium tune`"
            rows.append(("VERDICT", f"WORSE than {baseline}: {advice}"))
    if gain := facts.get("gain"):
        if facts["validation_queries"] == 0:
            rows.append((f"{gain['metric']} in cross-validation, this method", format_number(gain["value"])))
        for rival in gain["rows"]:
            better = f"{rival['difference']:+.4f} (standard error {rival['error']:.4f})"
            rows.append((f"better than {rival['name']} by", better))
    elif learned and "shards" not in facts and "metric" not in facts:
        rows.append(("held out", "nothing, so the model cannot be compared with an unsupervised method; "
                     "give --validation FILE or --validation-share SHARE"))  # fmt: skip
    rows += [("note", note) for note in facts.get("notes", ())]
    print_table(["fact", "value"], [*rows, ("saved as", facts["model"])], left=2)
