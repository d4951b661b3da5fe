"""One annotation per parameter defines its validation, command-line option, search space and documentation.

Methods declare their parameters this way, and so do the settings of `podium.core.settings`, from which the
options of the command line and the fields of requests are made.

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
import numbers
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from podium.core.errors import ParameterError
from podium.core.old_names import RenamedAttribute


@dataclass(frozen=True)
class Range:
    """A closed interval of numbers; `open_low` and `open_high` exclude an end."""

    low: float
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            return False
        return self.includes(value)

    def includes(self, number: float) -> bool:
        """Whether a number of any type lies in the interval."""
        above = self.low < number if self.open_low else self.low <= number
        return above and (number < self.high if self.open_high else number <= self.high)

    def __str__(self) -> str:
        return f"{'(' if self.open_low else '['}{self.low:g}, {self.high:g}{')' if self.open_high else ']'}"

    def describe(self) -> str:
        """The interval in words.

        >>> Range(1).describe(), Range(1e-9, 1e6).describe(), Range(0, 1, True, True).describe()
        ('from 1', 'from 1e-9 to 1e6', 'between 0 and 1, both excluded')
        """
        texts = (f"{self.low:g}", f"{self.high:g}")
        low, high = (text.replace("e-0", "e-").replace("e+0", "e") for text in texts)
        if self.open_low and self.open_high:
            return f"between {low} and {high}, both excluded"
        to = f" to {high}" if math.isfinite(self.high) else ""
        return f"{'above' if self.open_low else 'from'} {low}{to}"


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


class Flags:
    """How the command line spells a setting, where its name alone does not determine it.

    `names` are the flags instead of `--name`; `metavar` stands for the value in the help. With
    `shows_range=False` the help omits the bounds, and only the library checks them.
    """

    def __init__(self, *names: str, metavar: str | None = None, shows_range: bool = True) -> None:
        self.names, self.metavar, self.shows_range = names, metavar, shows_range


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
    hint: Any = None  # the annotated type as written, such as int | None
    marks: tuple[Any, ...] = ()  # the whole annotation, for interfaces that add their own marks

    @property
    def flags(self) -> Flags:
        """How the command line spells it."""
        return next((m for m in self.marks if isinstance(m, Flags)), Flags())

    @property
    def is_tunable(self) -> bool:
        """Whether a search can vary it: it has an interval, a few choices, or is boolean."""
        several = self.tune is not None or isinstance(self.accepts, Choice) or self.kind is bool
        return several and not self.fixed

    def describe(self) -> str:
        """A description of the accepted values, for errors, `podium methods` and the docs."""
        if isinstance(self.accepts, Choice):
            return f"one of {self.accepts}"
        words: dict[Any, str] = {float: "number", int: "whole number", bool: "true or false", str: "text"}
        word = {**words, Sequence[float]: "list of numbers"}.get(self.kind, "value")
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
    params = []
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        if get_origin(hint) is not Annotated:
            continue
        kind, *marks = get_args(hint)
        default = field.default if field.default is not dataclasses.MISSING else None
        plain = kind if isinstance(kind, type) else next(iter(get_args(kind)), kind)
        literal = next((k for k in (kind, plain) if get_origin(k) is Literal), None)
        if literal is not None:
            plain, marks = str, [*marks, Choice(*get_args(literal))]
        marks.reverse()  # a mark that is added to an annotated type replaces that of the type
        accepts = next((m for m in marks if isinstance(m, Range | Choice)), None)
        tune = next((m for m in marks if isinstance(m, Tune)), None)
        text = next((m for m in marks if isinstance(m, str)), "")
        fixed = any(isinstance(m, Fixed) for m in marks)
        params.append(Parameter(field.name, plain, default, accepts, tune, text, fixed, kind, tuple(marks)))
    return tuple(params)


def validate(instance: object) -> None:
    """Raise `ParameterError` for the first field outside its annotation."""
    cls: type = type(instance)
    for p in parameters(cls):
        value = getattr(instance, p.name)
        if p.is_invalid(value) and not (value is None and p.default is None):
            raise ParameterError(
                f"{getattr(cls, 'name', '') or cls.__name__}: {p.name} is {value!r}; accepted: {p.describe()}"
            )


def check_settings(cls: type, values: Mapping[str, Any]) -> None:
    """Raise `ParameterError` for a value that the annotation of that setting does not accept.

    Types are checked before bounds; numbers of other libraries are numbers.
    """
    declared = [p for p in parameters(cls) if p.name in values]
    for p in declared:
        value, number = values[p.name], {int: numbers.Integral, float: numbers.Real}.get(p.kind)
        if number is not None and not isinstance(value, number) and not _is_unset(p, value):
            raise ParameterError(f"{p.name} is {value!r}; accepted: {_plural(p)}")
    for p in declared:
        value = values[p.name]
        if isinstance(p.accepts, Choice) and value not in p.accepts and not _is_unset(p, value):
            raise ParameterError(f"{p.name} is {value!r}; accepted: {', '.join(map(str, p.accepts.values))}")
        if isinstance(p.accepts, Range) and value is not None and not p.accepts.includes(value):
            raise ParameterError(f"{p.name} is {value}; accepted: {_plural(p)} {p.accepts.describe()}")


def _is_unset(p: Parameter, value: object) -> bool:
    return value is None and type(None) in get_args(p.hint)


def _plural(p: Parameter) -> str:
    return "whole numbers" if p.kind is int else "numbers"


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
    name, bracket, rest = spec.strip().partition("(")
    if not bracket:
        return name, {}
    bad = ParameterError(f"cannot read {spec!r}; write a name, or a name with values such as rrf(k=20)")
    quoted = _METRIC.sub(lambda m: m[0] if m["bare"] is None else repr(m["bare"]), rest)
    try:
        call = ast.parse(f"f({quoted}", mode="eval").body
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


def _parse_literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        # true and false as people type them in a shell; any other bare word is a string
        return {"true": True, "false": False}.get(node.id.lower(), node.id)
    if isinstance(node, ast.Call) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return ast.unparse(
            node
        )  # a metric with values, such as rbp(p=0.8), or several names, such as rrf + svd
    return ast.literal_eval(node)


class ParameterDataclass:
    """Base of dataclasses that print as `name(changed=parameters)`, the form that `make` parses."""

    name: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()  # names that `make` accepts too
    parameters = RenamedAttribute("get_parameters")

    def get_parameters(self) -> dict[str, Any]:
        """All constructor arguments by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}  # type: ignore[arg-type]

    def key_facts(self) -> list[Any]:
        """Plain values that identify it, for stored results: defaults count too, as they can change."""
        return [self.name, {name: repr(value) for name, value in self.get_parameters().items()}]

    def __repr__(self) -> str:
        default = {f.name: f.default for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        changed = [
            f"{k}={v!r}"
            for k, v in self.get_parameters().items()
            if type(v) is not type(default[k]) or v != default[k]
        ]
        return f"{self.name}({', '.join(changed)})" if changed else self.name
