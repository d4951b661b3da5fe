"""The method that a verb runs: a name with parameters and weights, a model file, or a model over features."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import click

from podium.cli._options import F, add_option, add_options, collect
from podium.cli._progress import progress_bar
from podium.cli.input import Input, parse_assignments
from podium.cli.output import echo_note
from podium.core import registry
from podium.core.errors import ParameterError
from podium.core.params import Flags, parse_spec, suggest_names

if TYPE_CHECKING:
    from podium.analysis.answer import Answer
    from podium.data.preferences import Preferences
    from podium.evaluate.gain_check import GainCheck
    from podium.methods.base import Aggregator


AUTO = "auto"  # the default of `podium fuse`
BUDGET = 60.0  # as in `podium.find_answer`


@dataclass(frozen=True)
class MethodChoice:
    """The values of `-m`, `-p` and `--weights`."""

    spec: Annotated[str, Flags("-m", "--method"), "A method, such as 'rrf(k=20)', or a model file."] = "rrf"
    parameters: Annotated[
        tuple[str, ...], Flags("-p", "--parameter", metavar="NAME=VALUE"), "A parameter of the method."
    ] = ()
    weights: Annotated[
        str | None, Flags(metavar="NAME=W,..."), "Weights of the experts, such as bm25=1,dense=2."
    ] = None

    def make(self) -> Aggregator:
        """Make the method; a file path is a saved model."""
        from podium import models
        from podium.methods.base import make

        if self.spec.endswith(".podium") or os.path.isfile(self.spec):
            if self.parameters or self.weights:
                raise ParameterError(
                    f"{self.spec} is a saved model with its own parameters and weights; leave -p and --weights out"
                )
            loaded: Aggregator = models.load(self.spec)
            return loaded
        given = parse_parameters(self.parameters)
        if self.weights is not None:
            given["weights"] = {}
            for name, value in parse_assignments(self.weights.split(","), "weight").items():
                try:
                    given["weights"][name] = float(value)
                except ValueError:
                    raise ParameterError(f"the weight of {name!r} is {value!r}; give a number") from None
        return make(self.spec, **given)

    def make_for(self, source: Input) -> Aggregator:
        """Make the method for this input; `auto` chooses it by its form, and prints why."""
        if self.spec != AUTO:
            method = self.make()  # before the input is read: a wrong parameter is reported at once
            return match_weights(method, source.preferences)
        from podium.methods.automatic_choice import choose_method

        self.check_automatic()
        plain = MethodChoice("rrf", weights=self.weights).make()
        recommendation = choose_method(
            source.preferences, weights=match_weights(plain, source.preferences).weights
        )
        if recommendation.reason:
            echo_note(recommendation.describe())
        return recommendation.method

    def check_automatic(self) -> None:
        """Refuse parameters of a method that is not chosen yet."""
        if parse_parameters(self.parameters):
            raise ParameterError("auto chooses the method and has no parameters; name a method with -m")

    def find_answer(self, source: Input, budget: float | None) -> Answer:
        """What `auto` chooses by the judgements, with its held-out estimate; prints both sentences."""
        from podium.analysis.answer import find_answer

        self.check_automatic()
        if self.weights is not None:
            raise ParameterError("judgements choose the weights too; leave --weights or --qrels out")
        with progress_bar() as progress:
            answer = find_answer(
                source.preferences,
                source.labels,
                source.item_features,
                budget=BUDGET if budget is None else budget or None,
                progress=progress,
            )
        echo_note(answer.describe())
        echo_note(answer.explanation)
        return answer

    def make_streaming(self) -> Any:
        """Make a method or a model over features that can be trained on shards."""
        cls = find_learner(self.spec)
        if cls is None:
            method = self.make()
            if hasattr(method, "fit_stream"):
                return method
            able = [name for name, cls in registry.aggregators.all().items() if hasattr(cls, "fit_stream")]
            raise ParameterError(
                f"{method.name} cannot be trained on shards, only "
                f"{', '.join(sorted([*able, *list_streaming_learners()]))}; leave --shards out and give files that "
                "fit in memory"
            )
        if self.weights is not None:
            raise ParameterError(
                f"{cls.__name__} ranks by item features and has no experts; leave --weights out"
            )
        known = [f.name for f in dataclasses.fields(cls) if f.init and f.name != "prior"]
        given = parse_spec(self.spec)[1] | parse_parameters(self.parameters)
        return cls(**check_names(given, known, cls.__name__))


def with_budget(command: F) -> F:
    """Add `--budget`, for `auto` with judgements."""
    return click.option(
        "--budget",
        type=click.FloatRange(0),
        default=None,
        show_default=f"{BUDGET:g}",
        metavar="SECONDS",
        help="Time for auto to choose by judgements; 0: no limit.",
    )(command)


def refuse_budget(budget: float | None) -> None:
    """Refuse `--budget` where no judgements choose the method."""
    if budget is not None:
        raise ParameterError("--budget limits the choice that auto makes by judgements; leave it out")


def describe_failed_check(check: GainCheck | None, name: str) -> str:
    """Why a model is not saved: it is worse than rrf or the best expert, or cannot be compared; empty if it may be."""
    if check is None:
        problem = (
            f"{name} cannot be compared with rrf and the best expert: too few judged queries are held out"
        )
        return f"not saved: {problem}; label more queries, or give --save-anyway"
    problem = check.describe_failure(name)
    advice = "use that instead, label more queries, let podium fit -m auto choose, or give --save-anyway"
    return f"not saved: {problem}; {advice}" if problem else ""


def with_save_anyway(command: F) -> F:
    """Add `--save-anyway`."""
    return click.option(
        "--save-anyway",
        is_flag=True,
        help="Save the model even if it is worse than rrf or the best expert on held-out queries.",
    )(command)


def with_method(method: str | None = None, weights: str | None = None, **changes: Any) -> Callable[[F], F]:
    """Add `-m`, `-p` and `--weights` with the verb's help, and hand over `choice`, a `MethodChoice`."""

    def decorate(command: F) -> F:
        command = add_option(MethodChoice, "weights", weights)(collect(MethodChoice, "choice")(command))
        command = add_options(MethodChoice, "parameters")(command)
        return add_option(MethodChoice, "spec", method, **changes)(command)

    return decorate


def make_method(spec: str, source: Input | None = None) -> Aggregator:
    """Make a method from its specification, or load a model file; with `source`, `auto` chooses by its form."""
    choice = MethodChoice(spec)
    return choice.make() if source is None or spec != AUTO else choice.make_for(source)


def match_weights(method: Aggregator, preferences: Preferences) -> Aggregator:
    """Match the weights to expert ids: command-line names are text, but an expert id may be a number."""
    if not isinstance(method.weights, Mapping):
        return method
    numbers = {str(e): e for e in preferences.experts if not isinstance(e, str)}
    known = set(preferences.experts)
    named = {e if e in known else numbers.get(str(e), e): w for e, w in method.weights.items()}
    return dataclasses.replace(method, weights=named)


def parse_parameters(parameters: Sequence[str]) -> dict[str, Any]:
    """The values of `-p`."""
    given: dict[str, Any] = {}
    for name, value in parse_assignments(parameters, "parameter").items():
        given |= parse_spec(f"p({name}={value})")[1] if name.isidentifier() else {name: value}
    return given


def check_names(given: dict[str, Any], known: Collection[str], owner: str) -> dict[str, Any]:
    """The parameters, if the owner has all of them."""
    for name in given:
        if name not in known:
            raise ParameterError(f"{owner} has no parameter {name!r}; {suggest_names(name, known)}")
    return given


def is_method(name: str) -> bool:
    """Whether the text names a method, with or without parameters."""
    return name.partition("(")[0] in registry.aggregators


def find_learner(spec: str) -> type | None:
    """The feature-only model of this name, such as lambdarank, ignoring case; None if there is none."""
    name = parse_spec(spec)[0].lower()
    if not name.isidentifier() or name in registry.aggregators:
        return None
    return list_streaming_learners().get(name)


def list_streaming_learners() -> dict[str, type]:
    """The feature-only models that can be trained on shards, by command-line name."""
    return {n.lower(): cls for n, cls in registry.learners.all().items() if hasattr(cls, "fit_stream")}
