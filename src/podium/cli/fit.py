"""podium fit: Train a model on judgements and save it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from podium.cli._fit_shards import fit_shards
from podium.cli._method import MethodChoice, find_learner, match_weights, with_method
from podium.cli._options import add_option, add_options
from podium.cli._progress import progress_bar
from podium.cli._shards import TRAINING, ShardOptions, refuse_options, with_shards
from podium.cli.input import FILES, Input, with_input
from podium.cli.output import Output, format_number, print_json, print_table, with_output
from podium.core.errors import ParameterError

if TYPE_CHECKING:
    from podium.data.dataset import Dataset
    from podium.methods.base import Aggregator

ENOUGH = 25  # labeled queries from which a validation share is held out by default
SHARE = 0.2
METRIC = "ndcg@10"


@click.command(name="fit")
@add_options(Input, "qrels")
@with_method(
    "A method, such as svd or 'rrf(k=20)'.",
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
    output: Output,
    how: ShardOptions,
) -> None:
    """Train a model on judgements and save it.

    \b
    podium fit *.run --qrels qrels.txt -m svd -o model.podium
    podium fit A1.txt A2.txt A3.txt --validation A4.txt -m svd -p transform=log -o model.podium
    podium apply model.podium new/*.run -o fused.run
    podium fit --shards train/*.parquet --validation vali/ -m lambdarank -o model.podium
    """
    from podium import models
    from podium.data.dataset import Dataset

    output.check()
    if validation and validation_share is not None:
        raise click.UsageError("give --validation or --validation-share, not both")
    facts: dict[str, Any] = {"model": output.path}
    if how.is_requested([*source.files, *validation]):
        refuse_options(features=source.features, validation_share=validation_share, seed=seed)
        model, learned = choice.make_streaming(), True
        facts |= fit_shards(model, source, validation, how)
    else:
        model = dataclasses.replace(match_weights(_make_method(choice), source.preferences))
        learned = model.tags.supervised
        labels = source.labels if learned or source.qrels else source.content.labels
        data = Dataset(source.preferences, labels, source.features_of(model))
        train, held = (
            (data, _read_validation(model, dataclasses.replace(source, files=validation), data))
            if validation
            else _split_validation(data, validation_share, seed, learned)
        )
        facts |= _fit_and_measure(model, train, held)
    models.save(model, facts["model"], overwrite=output.overwrite)
    if output.json:
        print_json(facts)
    else:
        _print_summary(facts, learned)


def _make_method(choice: MethodChoice) -> Aggregator:
    try:
        return choice.make()
    except ParameterError:
        if find_learner(choice.spec) is None:
            raise
        raise ParameterError(
            f"{choice.spec} learns from item features alone; give one or more feature files as shards (--shards)"
        ) from None


def _fit_and_measure(model: Any, train: Dataset, held: Dataset | None) -> dict[str, Any]:
    """Fit the model and return the facts to report."""
    begin = time.perf_counter()
    learned: bool = model.tags.supervised
    data = train.preferences, train.labels, train.features
    if learned:
        with progress_bar() as progress:
            model.fit(*data, validation=held, progress=progress)
    else:
        model.fit(*data)
    return {
        "method": repr(model),
        "fingerprint": train.preferences.fingerprint,
        "queries": _count_labeled_queries(train),
        "validation_queries": 0 if held is None else _count_labeled_queries(held),
        "passes": getattr(model, "passes_", None),
        "seconds": round(time.perf_counter() - begin, 3),
        **(_recall_quality(model) if learned else _measure_unsupervised(model, train)),
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


def _split_validation(
    data: Dataset, share: float | None, seed: int, learns: bool
) -> tuple[Dataset, Dataset | None]:
    from podium.evaluate import holdout

    if share is None:
        share = SHARE if learns and _count_labeled_queries(data) >= ENOUGH else 0.0
    return holdout(data, share, seed) if share else (data, None)


def _count_labeled_queries(data: Dataset) -> int:
    from podium.evaluate.splits import find_labeled_queries

    return int(find_labeled_queries(data).sum())


def _recall_quality(model: Any) -> dict[str, Any]:
    """The comparison with an unsupervised baseline on the validation queries, if there were any."""
    measured: dict[str, Any] = getattr(model, "validation_", {})
    if not measured:
        return {"verdict": "not measured"}
    kept = {k: measured[k] for k in ("metric", "baseline", "before", "after")}
    return {"measured_on": "validation", **kept, "verdict": _choose_verdict(kept["before"], kept["after"])}


def _measure_unsupervised(model: Aggregator, data: Dataset) -> dict[str, Any]:
    """The same for a method fitted without labels, for which all labeled queries are held out; and its notes."""
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
    rows += _list_quality(facts)
    if learned and "shards" not in facts and "metric" not in facts:
        rows.append(("held out", "nothing, so the model cannot be compared with an unsupervised method; "
                     "give --validation FILE or --validation-share SHARE"))  # fmt: skip
    rows += [("note", note) for note in facts.get("notes", ())]
    print_table(["fact", "value"], [*rows, ("saved as", facts["model"])], left=2)


def _list_quality(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The metric of the model, and of the method without training where that is known."""
    if "metric" not in facts:
        return
    where = f"{facts['metric']} on {facts.get('measured_on', 'validation')} queries"
    better, value = facts.get("baseline"), facts["quality"] if "quality" in facts else facts["after"]
    if better is not None:
        yield f"{where}, {better}", format_number(facts["before"])
    yield f"{where}, this model", format_number(value)
    if facts.get("verdict") == "worse":
        yield "VERDICT", f"WORSE than {better}: use {better}, label more queries, or see `podium tune`"
