"""One annotation per parameter defines its validation, command-line option, search space and documentation.

>>> from dataclasses import dataclass
>>> @dataclass
... class Toy:
...     k: Annotated[float, Range(0, 100), Tune(1, 50, log=True), "damping"] = 60
>>> [p] = parameters(Toy)
>>> p.name, p.default, p.describe(), p.help
('k', 60, 'number in [0, 100]', 'damping')
>>> validate(Toy(k=-1))
Traceback (most recent call last):
podium.core.errors.ParameterError: Toy: k is -1; accepted: number in [0, 100]
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import math
import re
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from podium.core.errors import ParameterError

__all__ = [
    "Choice",
    "Fixed",
    "Parameter",
    "Range",
    "Tune",
    "parameters",
    "parse_spec",
    "suggest_names",
    "validate",
]


@dataclass(frozen=True)
class Range:
    """A closed interval of numbers; `open_low` excludes the lower end."""

    low: float
    high: float
    open_low: bool = False

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            return False
        return (self.low < value if self.open_low else self.low <= value) and value <= self.high

    def __str__(self) -> str:
        return f"{'(' if self.open_low else '['}{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class Choice:
    """One of a few named values."""

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)

    def __contains__(self, value: object) -> bool:
        return any(value == v and type(value) is type(v) for v in self.values)

    def __str__(self) -> str:
        return " | ".join(map(str, self.values))


@dataclass(frozen=True)
class Tune:
    """The search interval, optionally on a log scale. Choices are searched exhaustively."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Fixed:
    """Excludes a parameter from tuning: it does not affect ranking quality."""


@dataclass(frozen=True)
class Parameter:
    """A parsed annotation."""

    name: str
    kind: Any
    default: Any
    accepts: Range | Choice | None
    tune: Tune | None
    help: str
    fixed: bool = False

    @property
    def is_tunable(self) -> bool:
        """Whether a search can vary it: it has an interval, a few choices, or is boolean."""
        several = self.tune is not None or isinstance(self.accepts, Choice) or self.kind is bool
        return several and not self.fixed

    def describe(self) -> str:
        """A description of the accepted values, for errors, `podium methods` and the docs."""
        if isinstance(self.accepts, Choice):
            return f"one of {self.accepts}"
        word = {float: "number", int: "whole number", bool: "true or false", str: "text"}.get(
            self.kind, "value"
        )
        return f"{word} in {self.accepts}" if self.accepts else word

    def is_invalid(self, value: object) -> bool:
        """Whether the value is outside what the annotation accepts."""
        if self.kind is bool:
            return not isinstance(value, bool)
        if self.kind is str and self.accepts is None:
            return not isinstance(value, str)
        if self.kind is int and (not isinstance(value, int) or isinstance(value, bool)):
            return True
        return self.accepts is not None and value not in self.accepts


@functools.cache
def parameters(cls: type) -> tuple[Parameter, ...]:
    """The declared parameters of a dataclass, in order; fields without these annotations are skipped."""
    hints = get_type_hints(cls, include_extras=True)
    found = []
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        if get_origin(hint) is not Annotated:
            continue
        kind, *marks = get_args(hint)
        default = field.default if field.default is not dataclasses.MISSING else None
        marks.reverse()  # a mark that is added to an annotated type replaces that of the type
        accepts = next((m for m in marks if isinstance(m, Range | Choice)), None)
        tune = next((m for m in marks if isinstance(m, Tune)), None)
        text = next((m for m in marks if isinstance(m, str)), "")
        plain = kind if isinstance(kind, type) else next(iter(get_args(kind)), kind)
        fixed = any(isinstance(m, Fixed) for m in marks)
        found.append(Parameter(field.name, plain, default, accepts, tune, text, fixed))
    return tuple(found)


def validate(instance: object) -> None:
    """Raise `ParameterError` for the first field outside its annotation."""
    cls: type = type(instance)
    for p in parameters(cls):
        value = getattr(instance, p.name)
        if p.is_invalid(value) and not (value is None and p.default is None):
            raise ParameterError(
                f"{getattr(cls, 'name', '') or cls.__name__}: {p.name} is {value!r}; accepted: {p.describe()}"
            )


MAX_LISTED_NAMES = 100  # names in a message


def suggest_names(name: str, known: Iterable[str]) -> str:
    """A 'did you mean ...?' hint, or all known names (truncated if very many) when none is similar."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = f", ... ({len(names):,} in all)" if len(names) > MAX_LISTED_NAMES else ""
    return f"known: {', '.join(names[:MAX_LISTED_NAMES])}{more}"


def parse_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Split 'rrf(k=20)' into its name and keyword values; only literals are read.

    >>> parse_spec("combsum(normalizer='zscore')")
    ('combsum', {'normalizer': 'zscore'})
    >>> parse_spec("combsum(normalizer=zscore)")
    ('combsum', {'normalizer': 'zscore'})
    >>> parse_spec("svd(metric=ndcg@5:exp, passes=3)")
    ('svd', {'metric': 'ndcg@5:exp', 'passes': 3})
    """
    bad = ParameterError(f"cannot read {spec!r}; write a name, or a name with values such as rrf(k=20)")
    name, bracket, rest = spec.strip().partition("(")
    if not bracket:
        return name, {}
    try:
        call = ast.parse(f"f({_METRIC.sub(_quote_metric, rest)}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise bad from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise bad
    if any(k.arg is None for k in call.keywords):
        raise bad
    try:
        return name, {typing.cast(str, k.arg): _parse_literal(k.value) for k in call.keywords}
    except (ValueError, TypeError):
        raise bad from None


# quoted text, unchanged; or a bare metric after =, such as ndcg@10:exp, which is not one Python name
_METRIC = re.compile(r"""'[^']*'|"[^"]*"|(?<==)\s*(?P<bare>[a-z]\w*(?=[@:])(?:@\d+)?(?::\w+)?)\s*(?=[,)])""")


def _quote_metric(found: re.Match[str]) -> str:
    return found[0] if found["bare"] is None else repr(found["bare"])


def _parse_literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        # true and false as people type them in a shell; any other bare word is a string
        return {"true": True, "false": False}.get(node.id.lower(), node.id)
    if isinstance(node, ast.Call):
        return ast.unparse(node)  # a metric with values, such as rbp(p=0.8)
    return ast.literal_eval(node)
