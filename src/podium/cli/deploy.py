"""podium deploy: Write the configuration of a search engine that ranks as a method does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from podium.cli._method import make_method
from podium.cli._options import add_option, add_options
from podium.cli._progress import progress_bar
from podium.cli.input import Input, parse_assignments, with_input
from podium.cli.output import Output, echo_note, print_grid, print_json, with_output
from podium.core.errors import ParameterError

if TYPE_CHECKING:
    from podium.deployment import Deployment
    from podium.methods.base import Aggregator


@click.command(name="deploy")
@click.argument("model")
@click.option("--to", "engine", required=True, metavar="ENGINE", help="qdrant, elasticsearch, opensearch, weaviate, "
              "milvus, vespa, lancedb, postgres, duckdb, sqlite, clickhouse, langchain, llamaindex, haystack or "
              "pyterrier.")  # fmt: skip
@click.option("--experts", metavar="EXPERT=NAME,...", help="The name of each expert in the engine, such as "
              "bm25=title,dense=embedding.  [default: the experts of the weights or of the runs]")  # fmt: skip
@click.option("--depth", type=click.IntRange(1), default=100, show_default=True,
              help="Items of each list that the engine fuses.")  # fmt: skip
@click.option("--nearest", is_flag=True, help="Accept the nearest form if the engine has no exact one.")
@click.option("--check", is_flag=True, help="Emulate the engine on the runs, and count the queries with the same "
              "order. Runs that are given are always checked.")  # fmt: skip
@click.option("--on", metavar="CONNECTION", help="Check on a real database instead of the emulator: sqlite:///FILE, "
              "duckdb:///FILE or postgresql://USER@HOST/DATABASE. The runs go into a temporary table.")  # fmt: skip
@click.option("--cost", is_flag=True, help="Instead of a configuration: what tuned values lose when they are typed "
              "into the engine, on held-out queries; needs runs and --qrels.")  # fmt: skip
@add_options(Input, "qrels")
@click.option("-M", "--metric", default="ndcg@10", show_default=True, help="The metric of --qrels.")
@add_option(Output, "path", "The configuration file to write.", type=click.Path())
@add_options(Output, "overwrite")
@with_input
@with_output
def verb(
    model: str,
    engine: str,
    experts: str | None,
    depth: int,
    nearest: bool,
    check: bool,
    on: str | None,
    cost: bool,
    metric: str,
    source: Input,
    output: Output,
) -> None:
    """Write the configuration of a search engine or framework that ranks as a method or saved model does.

    Every engine has its own formula. What it cannot express is refused, with the nearest form that it can; with
    runs and --qrels the refusal says what that form costs. Runs are ranked by the method and by an emulator of
    the engine (or, with --on, by a real database), and compared query by query.

    \b
    podium deploy best.podium --to qdrant --experts bm25=title,dense=embedding -o fusion.http
    podium deploy 'rrf(k=60)' --to elasticsearch --check bm25.run dense.run
    podium deploy best.podium --to qdrant --nearest --check *.run --qrels qrels.txt
    podium deploy auto --to elasticsearch --nearest *.run
    podium deploy rrf --to duckdb --check *.run --on duckdb:///:memory:
    podium deploy rrf --to qdrant --cost *.run --qrels qrels.txt
    """
    from podium.core import registry
    from podium.data.dataset import Dataset
    from podium.deployment import measure_copying_cost
    from podium.methods.automatic_choice import fix_weights

    output.check()
    registry.engines.get(engine)
    asked = "--cost" if cost else "--on" if on is not None else "--check" if check else None
    if asked is not None and not source.files:
        raise ParameterError(f"{asked} needs runs; give the files after the options")
    if cost:
        data = Dataset(source.preferences, source.labels)
        with progress_bar() as progress:
            loss = measure_copying_cost(data, engine, model, metric=metric, depth=depth, progress=progress)
        if output.json:
            print_json(loss.to_dict())
            return
        print_grid(loss.grid())
        for note in loss.notes:
            echo_note(f"deployed in its nearest form: {note}")
        return
    given = make_method(model, source)
    method = fix_weights(given, source.preferences) if source.files else given
    names: Any = None
    if experts is not None:
        names = parse_assignments(experts.split(","), "expert")
    elif source.files and not isinstance(method.weights, dict) and not hasattr(method, "weights_"):
        names = source.preferences.experts.tolist()
    deployment = _deploy_or_refuse(method, given, engine, names, depth, nearest, metric, source)
    facts = _check_runs(deployment, metric, source, on) if source.files else {}
    if output.path is not None:
        from podium.storage.files import write_atomically

        write_atomically([deployment.config.encode()], output.path, overwrite=output.overwrite)
    if output.json:
        print_json(
            {
                "engine": engine,
                "method": repr(method),
                "form": deployment.form.describe(),
                "exact": deployment.exact,
                "notes": list(deployment.notes),
                "config": deployment.config,
                **facts,
            }
        )
    elif output.path is None:
        click.echo(deployment.config, nl=False)
    else:
        echo_note(f"{deployment.form.describe()} written to {output.path}")


def _deploy_or_refuse(
    method: Aggregator,
    given: Aggregator,
    engine: str,
    names: Any,
    depth: int,
    nearest: bool,
    metric: str,
    source: Input,
) -> Deployment:
    """The deployment; a refusal says what the nearest form costs, where runs and judgements are given."""
    from podium.deployment import deploy

    deployment = deploy(method, engine, experts=names, depth=depth, nearest=True)
    if deployment.exact or nearest:
        return deployment
    words = [f"{deployment.form.reason}; the nearest form is {deployment.form.describe()}"]
    if source.files:
        words.append(deployment.check(source.preferences).describe().rstrip("."))
    if source.files and source.optional_labels is not None:
        words.append(_describe_cost(deployment, metric, source))
    ways = ["accept it with --nearest", f"tune in its own formula with podium tune --for {engine}"]
    if spec := _find_exact_points(given, engine, names, depth, source):
        ways.append(f"take podium deploy '{spec}' --to {engine}, which it computes exactly")
    words.append(", or ".join(ways))
    raise ParameterError("; ".join(words))


def _find_exact_points(given: Aggregator, engine: str, names: Any, depth: int, source: Input) -> str:
    """`quality_weighted` with the points of rrf, if it is asked for and the engine has exactly these points."""
    from podium.deployment import deploy
    from podium.methods.automatic_choice import fix_weights
    from podium.methods.base import make

    if given.name != "quality_weighted" or not source.files:
        return ""
    spec = "quality_weighted(points=rrf)"
    rule = fix_weights(make(spec, weights=given.weights), source.preferences)
    try:
        exact = deploy(rule, engine, experts=names, depth=depth, nearest=True).exact
    except ParameterError:
        return ""
    return spec if exact else ""


def _describe_cost(deployment: Deployment, metric: str, source: Input) -> str:
    row = deployment.measure_cost(source.preferences, source.labels, metric)
    change = 0.0 if row.difference is None else row.difference
    span = "" if row.low is None else f" (95% interval {row.low:+.4f} .. {row.high:+.4f})"
    return f"{row.metric} {row.mean:.4f}, {change:+.4f} against the method{span}"


def _check_runs(deployment: Deployment, metric: str, source: Input, on: str | None) -> dict[str, Any]:
    """Compare the engine, emulated or real, with the method on the runs; print the result beside the configuration."""
    check = deployment.check(source.preferences, on=on)
    where = "" if on is None else ", the real engine"
    click.echo(f"{deployment.engine.title}{where}: {check.describe()}", err=True)
    facts: dict[str, Any] = {
        "check": {
            "queries": check.queries,
            "same": check.same,
            "same_top": check.same_top,
            "real": on is not None,
        }
    }
    if source.optional_labels is not None:
        words = _describe_cost(deployment, metric, source)
        click.echo(f"{deployment.engine.title}: {words}", err=True)
        facts["cost"] = words
    return facts
