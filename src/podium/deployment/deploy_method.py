"""`deploy`: the configuration that makes an engine rank as a method does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.core import registry
from podium.core.errors import Option, ParameterError
from podium.core.text import format_count
from podium.core.version import __version__
from podium.data.consensus import Consensus
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.deployment.database_run import rank_on_database
from podium.deployment.engine_input import close_gaps, prepare_input, select_experts
from podium.deployment.order_check import OrderCheck, compare_orders, count_gapped_lists, count_tied_lists
from podium.evaluate.comparison import compare
from podium.evaluate.comparison_result import ComparisonRow
from podium.methods.base import Aggregator, make
from podium.methods.dialects.fusion_engine import EngineForm, FusionEngine, format_weights
from podium.methods.dialects.textbook import Rewriting, read_textbook
from podium.metrics.base import MetricSpec

__all__ = ["Deployment", "deploy"]

DEPTH = 100  # items of each list that the engine fuses
COMMENTS = {"request": "#", "python": "#", "schema": "#", "sql": "--"}


@dataclass(frozen=True, eq=False, repr=False)
class Deployment:
    """A configuration of an engine, whether it ranks as the method does, and an emulator of it."""

    engine: type[FusionEngine]
    method: Aggregator  # the method that was deployed
    form: EngineForm
    depth: int
    notes: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether the engine gives the order of the method, up to ties in its precision."""
        return not self.form.reason

    @property
    def body(self) -> str:
        """The configuration without its header."""
        return self.engine().write_config(self.form, self.depth)

    @property
    def config(self) -> str:
        """The configuration, with a header of comments that says where it came from."""
        engine, form = self.engine, self.form
        lines = [
            f"{engine.title} configuration by Podium {__version__}",
            f"method: {describe_method(self.method)}",
            f"in the engine: {form.describe()}",
        ]
        for source, weight in zip(form.sources, form.weights, strict=True):
            lines.append(f"expert {source.expert}: {source.name}" + f", weight {weight:g}" * form.is_weighted)
        tuning = getattr(self.method, "tuning_", None)
        if tuning is not None:
            lines += describe_tuning(tuning)
        if self.exact:
            lines.append("exact: the order is that of the method, up to ties in the engine's precision")
        else:
            lines.append(f"NOT exact, the nearest form: {form.reason}")
        dialect = getattr(form.method, "dialect", None)
        where = f" ({dialect.depth})" if dialect is not None else ""
        lines += [f"every list is cut at {self.depth} items{where}", *self.notes]
        return "".join(f"{COMMENTS[engine.syntax]} {line}\n" for line in lines) + f"\n{self.body}"

    def emulate(self, preferences: Preferences) -> Consensus:
        """The ranking that the engine makes of these lists: each cut at `depth`, in the engine's formula."""
        given = prepare_input(preferences, self.form.sources, self.depth)
        return self.form.make_method().aggregate(given)

    def run(self, preferences: Preferences, connection: str) -> Consensus:
        """The ranking that a real database makes of these lists; its scores are places, the best the largest.

        `connection` is sqlite:///FILE, duckdb:///FILE or postgresql://USER@HOST/DATABASE; `:memory:` is a file too.
        The lists go into a temporary table, and nothing else is read or written.

        >>> preferences = Preferences.from_lists({"q": {"bm25": ["d1", "d2"], "dense": ["d2", "d3"]}})
        >>> deployment = deploy("rrf", "sqlite", experts=["bm25", "dense"])
        >>> deployment.run(preferences, "sqlite:///:memory:").ranking("q")
        ['d2', 'd1', 'd3']
        """
        if self.engine.syntax != "sql":
            raise ParameterError(
                f"{self.engine.title} is not a SQL database; only SQL databases can be run by a connection"
            )
        return rank_on_database(self.body, self.engine.name, self.form.sources, preferences, connection)

    def check(self, preferences: Preferences, *, on: str | None = None) -> OrderCheck:
        """In how many queries the engine's order is that of the method, and the first in which it is not.

        The engine is emulated, or is a real database if `on` is a connection to one (see `run`).
        """
        dialect = getattr(self.form.method, "dialect", None)
        tolerance = 1e-12 if dialect is None else dialect.tolerance
        expected = self._rank_by_method(close_gaps(preferences))
        ranked = self.emulate(preferences) if on is None else self.run(preferences, on)
        tied, gapped = count_tied_lists(preferences), count_gapped_lists(preferences)
        return compare_orders(ranked, expected, tolerance, tied_lists=tied, gapped_lists=gapped)

    def measure_cost(
        self, preferences: Preferences, labels: Labels, metric: MetricSpec = "ndcg@10"
    ) -> ComparisonRow:
        """The metric of the engine's ranking, and its difference to that of the method."""
        results = {"method": self._rank_by_method(preferences), "engine": self.emulate(preferences)}
        return compare(results, labels, metric, queries="judged").rows[1]

    def _rank_by_method(self, preferences: Preferences) -> Consensus:
        """The method on the same experts; weights name theirs."""
        if self.method.weights is None and not hasattr(self.method, "weights_"):
            preferences = select_experts(preferences, self.form.sources)
        return self.method.aggregate(preferences)

    def __repr__(self) -> str:
        state = "exact" if self.exact else "nearest form"
        return f"Deployment({describe_method(self.method)} to {self.engine.name}: {self.form.describe()}, {state})"


def deploy(
    method: str | Aggregator,
    to: str,
    *,
    experts: Mapping[Id, str] | Sequence[Id] | None = None,
    depth: int = DEPTH,
    nearest: bool = False,
) -> Deployment:
    """The configuration with which the engine `to` ranks as the method does.

    `experts` gives each expert its name in the engine: a vector, a field, a retriever. Without it, the
    experts are those that the method's weights name. A method that the engine cannot express is refused
    with the nearest form that it can; `nearest=True` accepts that form.

    >>> print(deploy("rrf(k=60)", "qdrant", experts=["bm25", "dense"]).body.splitlines()[0])
    POST /collections/<collection>/points/query
    >>> deploy("rrf(k=60)", "qdrant", experts=["bm25", "dense"])
    Deployment(rrf to qdrant: qdrant_rrf(k=61), exact)
    """
    made = make(method)
    engine: type[FusionEngine] = registry.engines.get(to)
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise ParameterError(f"depth is {depth!r}; accepted: whole numbers from 1")
    names = resolve_experts(made, experts, engine().rewrite_method(made))
    form = engine().translate(made, names)
    count, dialect = len(form.sources), getattr(form.method, "dialect", None)
    if dialect is not None and (limit := dialect.describe_list_limit(count)):
        have = format_count(count, "expert has", "experts have")
        raise ParameterError(
            f"{engine.title} fuses {limit} with {form.method.name}, and {have} a weight above 0"
        )
    if form.reason and not nearest:
        raise ParameterError(
            f"{form.reason}; the nearest form is {form.describe()}: accept it with ",
            Option("nearest", True, of="setting"),
            f", or tune in its own formula (podium tune --for {engine.name})",
        )
    notes = form.notes
    if not engine.was_run:
        source = f"the formula is derived from the sources of {engine.title}"
        notes = (*notes, f"not run against the real engine: {source}")
    return Deployment(engine, made, form, depth, notes)


def resolve_experts(
    method: Aggregator, experts: Mapping[Id, str] | Sequence[Id] | None, rewriting: Rewriting
) -> dict[Id, str]:
    """The name of each expert in the engine; the experts must be those of the weights."""
    rule = read_textbook(method)
    weights = method.weights if rule is None else rule.weights
    known = list(weights) if isinstance(weights, Mapping) else None
    if experts is None:
        if known is None and rewriting.reason:
            raise ParameterError(
                f"{rewriting.reason}; the nearest form is {rewriting.method!r}: name the experts with ",
                Option("experts", of="setting"),
                " and accept it with ",
                Option("nearest", True, of="setting"),
            )
        if known is None:
            raise ParameterError(
                f"{method.name} does not name its experts; name them with ", Option("experts", of="setting")
            )
        return {e: str(e) for e in known}
    given = dict(experts) if isinstance(experts, Mapping) else {e: str(e) for e in experts}
    if known is not None:
        by_text = {str(e): e for e in known}  # names from the command line are text
        given = {e if e in known else by_text.get(str(e), e): name for e, name in given.items()}
        if set(given) != set(known):
            lacking = ", ".join(str(e) for e in known if e not in given)
            unknown = ", ".join(str(e) for e in given if e not in known)
            parts = [f"no name for {lacking}"] * bool(lacking) + [f"unknown: {unknown}"] * bool(unknown)
            listed = ", ".join(map(str, known[:10]))
            raise ParameterError(f"the experts do not match the weights ({'; '.join(parts)}); name {listed}")
        given = {e: given[e] for e in known}
    if not given:
        raise ParameterError("there are no experts to fuse; name at least one")
    twice = next((n for n in given.values() if list(given.values()).count(n) > 1), None)
    if twice is not None:
        raise ParameterError(f"two experts are called {twice!r} in the engine; give each its own name")
    return given


def describe_method(method: Aggregator) -> str:
    """The method with its parameters and the first few of its weights."""
    weights = method.weights if method.weights is not None else getattr(method, "weights_", None)
    plain = repr(make(method.name, **(method.get_parameters() | {"weights": None})))
    return f"{plain}, weights {format_weights(weights.items())}" if isinstance(weights, Mapping) else plain


def describe_tuning(tuning: Mapping[str, Any]) -> list[str]:
    """Where the parameters came from: the data, and the metric on held-out queries with its interval."""
    queries = format_count(tuning["queries"], "query", "queries")
    lines = [f"tuned on {queries}, data {tuning['fingerprint']}"]
    value = f"{tuning['metric']} {tuning['value']:.4f} on held-out queries"
    if tuning.get("low") is not None:
        value += (
            f", {tuning['difference']:+.4f} against {tuning['baseline']} "
            f"({tuning['level']:.0%} interval {tuning['low']:+.4f} .. {tuning['high']:+.4f})"
        )
    return [*lines, value]
