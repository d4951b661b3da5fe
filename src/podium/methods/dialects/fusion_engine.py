"""An engine that Podium can write a configuration for: which rules it has, how it takes weights, what it writes."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from podium.core import registry
from podium.data.ids import Id
from podium.methods.base import Aggregator
from podium.methods.dialects.dialect import Dialect, WeightRule
from podium.methods.dialects.textbook import Rewriting, Textbook, read_textbook
from podium.methods.input_checks import weights_for

__all__ = [
    "EngineForm",
    "FusionEngine",
    "ListSource",
    "count_copies",
    "format_request",
    "format_weight",
    "format_weights",
    "split_kind",
]

MOST_COPIES = 12  # requests in all, where a weight is written as a repeated request
SHOWN = 5  # weights in a sentence
DIGITS = 7  # significant digits of weights in configurations: those of a 32-bit float
ConfigSyntax = Literal["request", "sql", "python", "schema"]


@dataclass(frozen=True)
class ListSource:
    """One list that the engine fuses: the expert, its name in the engine, its weight, how often it is requested."""

    expert: Id
    name: str
    weight: float = 1.0
    copies: int = 1


@dataclass(frozen=True)
class EngineForm:
    """A method in an engine's own terms; `reason` says why it is only the nearest form, and is empty if exact."""

    method: Aggregator  # without weights
    sources: tuple[ListSource, ...]
    reason: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_weighted(self) -> bool:
        """Whether the engine is given weights."""
        values = {s.weight for s in self.sources}
        dialect: Dialect | None = getattr(self.method, "dialect", None)
        # equal factors do not change an order; inside the rank they do
        is_inside = dialect is not None and dialect.weights == "inside"
        return len(values) > 1 or (is_inside and values != {1.0})

    @property
    def weights(self) -> list[float]:
        """The weights as they are written, in the order of the lists."""
        return [format_weight(s.weight) for s in self.sources]

    @property
    def requests(self) -> list[ListSource]:
        """The lists as the engine is asked for them: a list with several copies occurs several times."""
        return [replace(s, copies=1) for s in self.sources for _ in range(s.copies)]

    def make_method(self) -> Aggregator:
        """The method with the weights that are written, by expert; repeated requests count as weights."""
        if not self.is_weighted:
            return self.method
        named = {s.expert: w for s, w in zip(self.sources, self.weights, strict=True)}
        return type(self.method)(**(self.method.get_parameters() | {"weights": named}))

    def describe(self) -> str:
        """The form in one phrase.

        >>> from podium import make
        >>> EngineForm(make("milvus_rrf"), (ListSource("a", "a"), ListSource("b", "b", copies=3))).describe()
        'milvus_rrf with the request of b repeated 3 times'
        """
        parts = [repr(self.method)]
        if self.is_weighted:
            named = zip((s.expert for s in self.sources), self.weights, strict=True)
            parts.append(f"weights {format_weights(named)}")
        parts += [
            f"the request of {s.expert} repeated {s.copies} times" for s in self.sources if s.copies > 1
        ]
        return f"{parts[0]} with {', '.join(parts[1:])}" if len(parts) > 1 else parts[0]


class FusionEngine(ABC):
    """Base of all engines. A subclass registers by being defined with a `name`."""

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    syntax: ClassVar[ConfigSyntax] = "python"
    repeats: ClassVar[bool] = False  # whether a list can be requested several times, which adds up
    was_run: ClassVar[bool] = False  # whether the formulas were compared with the running engine
    first: ClassVar[str] = ""  # the method that stands for the engine's default
    remarks: ClassVar[tuple[str, ...]] = ()  # what a user of every configuration should know
    textbook: ClassVar[tuple[str, ...]] = ()  # Podium's own methods that it computes unchanged

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("name"):
            registry.engines.add(cls.name, cls)

    @classmethod
    def list_methods(cls) -> list[str]:
        """Names of the methods that the engine can compute, its default first."""
        own = [
            n
            for n, m in registry.aggregators.all().items()
            if m.tags.dialect and m.dialect.engine == cls.name
        ]
        return sorted([*own, *cls.textbook], key=lambda n: (n != cls.first, n))

    def rewrite(self, rule: Textbook) -> Rewriting:
        """The engine's method for a textbook rule, whatever the weights; with the reason where it is not exact."""
        return Rewriting(
            registry.aggregators.get(self.first)(), f"{self.title} has no form of {rule.describe()}"
        )

    def rewrite_with_fixed_k(self, rule: Textbook, method: Aggregator, k: float) -> Rewriting:
        """The engine's method for a rule of ranks, where the engine has a k of its own."""
        reason = f"the k of {self.title} is {k:g}, and k is {rule.k:g}"
        return Rewriting(method, "" if rule.k == k else reason)

    @abstractmethod
    def write_config(self, form: EngineForm, depth: int) -> str:
        """The configuration, without a header."""

    def rewrite_method(self, method: Aggregator) -> Rewriting:
        """The engine's method for any method, whatever the weights; with the reason where it is not exact."""
        own: Dialect | None = getattr(method, "dialect", None)
        if own is not None and own.engine == self.name:
            return Rewriting(type(method)(**(method.get_parameters() | {"weights": None})))
        rule = read_textbook(method)
        if rule is None:
            return Rewriting(
                registry.aggregators.get(self.first)(), f"{self.title} has no form of {method.name}"
            )
        rewriting = self.rewrite(rule)
        return replace(rewriting, from_textbook=True, reason=rule.reason or rewriting.reason)

    def translate(self, method: Aggregator, names: Mapping[Id, str]) -> EngineForm:
        """The method in the engine's terms, exact where possible, otherwise the nearest form and the reason.

        `names` gives each expert its name in the engine. Experts of weight 0 are left out.
        """
        rule, rewriting = read_textbook(method), self.rewrite_method(method)
        given = method.weights if rule is None or not rewriting.from_textbook else rule.weights
        experts = list(names)
        weights = [1.0] * len(experts) if given is None else weights_for(given, experts, method.name).tolist()
        kept = {e: w for e, w in zip(experts, weights, strict=True) if w > 0}
        notes = tuple(f"{e} has weight 0 and is left out" for e in experts if e not in kept)
        # rules by expert, without those of the experts that are left out
        chosen, left_out = rewriting.method, set(experts) - set(kept)
        rules = {n: v for n, v in chosen.get_parameters().items() if isinstance(v, Mapping)}
        used = {n: {e: r for e, r in v.items() if e not in left_out} or None for n, v in rules.items()}
        if used != rules:
            chosen = type(chosen)(**(chosen.get_parameters() | used))
            rewriting = replace(rewriting, method=chosen)
        form = self._place_weights(rewriting, kept, names)
        return replace(form, notes=(*notes, *form.notes, *self.remarks))

    def _place_weights(
        self, rewriting: Rewriting, weights: Mapping[Id, float], names: Mapping[Id, str]
    ) -> EngineForm:
        method, reason = rewriting.method, rewriting.reason
        dialect: Dialect | None = getattr(method, "dialect", None)
        rule: WeightRule = "free" if dialect is None else dialect.weights
        sources = tuple(ListSource(e, names[e]) for e in weights)
        is_inside = rule == "inside" and not rewriting.from_textbook
        if len(set(weights.values())) == 1 and not is_inside:
            if rule in ("simplex", "alpha"):  # equal weights too must sum to 1
                sources = tuple(replace(s, weight=1 / len(sources)) for s in sources)
            return EngineForm(method, sources, reason, rewriting.notes)
        # inside the rank, a weight does not multiply the points; only a rule that has it there already keeps it
        if rule == "none" or (rule == "inside" and rewriting.from_textbook):
            return self._repeat_requests(rewriting, sources, weights)
        total = sum(weights.values()) if rule in ("simplex", "alpha") else max(weights.values())
        scale = 1.0 if rule in ("free", "inside") else total
        scaled = tuple(replace(s, weight=weights[s.expert] / scale) for s in sources)
        return EngineForm(method, scaled, reason, rewriting.notes)

    def _repeat_requests(
        self, rewriting: Rewriting, sources: tuple[ListSource, ...], weights: Mapping[Id, float]
    ) -> EngineForm:
        """Weights as repeated requests, where the engine adds these up."""
        shown = format_weights(weights.items())
        if not self.repeats:
            reason = f"{self.title} takes no weights here, and the weights are {shown}"
            return EngineForm(rewriting.method, sources, rewriting.reason or reason, rewriting.notes)
        copies, exact = count_copies([weights[s.expert] for s in sources])
        reason = rewriting.reason
        if not exact and not reason:
            reason = f"{self.title} can only repeat requests, and the weights {shown} are no ratio of few whole numbers"
        repeated = tuple(replace(s, copies=c) for s, c in zip(sources, copies, strict=True))
        return EngineForm(rewriting.method, repeated, reason, rewriting.notes)


def count_copies(weights: Sequence[float], most: int = MOST_COPIES) -> tuple[list[int], bool]:
    """Whole numbers in the ratio of the weights, at most `most` in all, and whether they are exact.

    >>> count_copies([1, 3, 1]), count_copies([1.0, 0.25]), count_copies([1, 0.37])
    (([1, 3, 1], True), ([4, 1], True), ([8, 3], False))
    """
    largest, best, least = max(weights), [1] * len(weights), float("inf")
    for unit in range(1, most + 1):
        copies = [max(1, round(unit * w / largest)) for w in weights]
        if sum(copies) > most:
            break
        error = max(abs(c / unit - w / largest) for c, w in zip(copies, weights, strict=True))
        if error < least - 1e-9:
            best, least = copies, error
    return best, least < 1e-9


def format_weights(weights: Iterable[tuple[Id, float]]) -> str:
    """The first few weights by expert.

    >>> format_weights([("bm25", 1.0), ("dense", 0.25)])
    'bm25=1, dense=0.25'
    """
    named = [f"{expert}={weight:g}" for expert, weight in weights]
    more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return ", ".join(named[:SHOWN]) + more


def format_weight(weight: float) -> float:
    """The weight as it is written.

    >>> format_weight(1 / 3)
    0.3333333
    """
    return float(f"{weight:.{DIGITS}g}")


def split_kind(name: str) -> tuple[bool, str]:
    """Whether a name such as knn:embedding denotes a vector field, and the field.

    >>> split_kind("knn:embedding"), split_kind("title")
    ((True, 'embedding'), (False, 'title'))
    """
    return name.startswith("knn:"), name.removeprefix("knn:")


def format_request(method: str, path: str, body: Any) -> str:
    """A request for the console of an engine: method and path, then the body as JSON."""
    return f"{method} {path}\n{json.dumps(body, indent=2, ensure_ascii=False)}\n"
