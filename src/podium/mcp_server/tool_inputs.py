"""What several tools do with their arguments: read files, find judgements, make methods, resolve ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.core.errors import ParameterError
from podium.core.params import suggest_names
from podium.mcp_server.file_access import FileAccess

if TYPE_CHECKING:
    from podium.data.labels import Labels
    from podium.data.preferences import Preferences
    from podium.formats import Content
    from podium.methods.base import Aggregator

__all__ = [
    "Id",
    "build_inline_preferences",
    "choose_or_make_method",
    "get_labels",
    "get_preferences",
    "make_method",
    "read_content",
    "read_labels",
    "resolve_id",
    "select_features",
]

Id = str | int
INLINE_OPTIONS = ("duplicates", "unlisted")


def read_content(
    access: FileAccess, files: list[str], format: str | None, options: dict[str, Any] | None
) -> Content:
    """Read files by name or pattern."""
    from podium import formats

    return formats.read(list(access.resolve_files(files)), format, **(options or {}))


def build_inline_preferences(lists: Any, options: dict[str, Any] | None) -> Preferences:
    """Preferences of one query from lists in the arguments of a call."""
    from podium.data.preferences import Preferences

    for name in options or {}:
        if name not in INLINE_OPTIONS:
            raise ParameterError(
                f"inline lists have no option {name!r}; {suggest_names(name, INLINE_OPTIONS)}"
            )
    named = lists if isinstance(lists, dict) else {f"list {n}": one for n, one in enumerate(lists, 1)}
    return Preferences.from_lists({"query": named}, **(options or {}))


def get_preferences(content: Content) -> Preferences:
    """The lists or votes of the files; an error that says what they hold instead."""
    if content.preferences is None:
        holds = " and ".join(sorted(content.parts))
        raise ParameterError(f"the files hold {holds} but no lists or votes; name runs, ratings or votes")
    return content.preferences


def read_labels(access: FileAccess, content: Content, qrels: str | None) -> Labels | None:
    """Judgements from their own file or from the input, if any."""
    if qrels is None:
        return content.labels
    labels = read_content(access, [qrels], None, None).labels
    if labels is None:
        raise ParameterError(
            f"{qrels} holds no judgements; name a qrels file, or a table with a grade column"
        )
    return labels


def get_labels(access: FileAccess, content: Content, qrels: str | None) -> Labels:
    """Judgements from their own file or from the input; an error if there are none."""
    labels = read_labels(access, content, qrels)
    if labels is None:
        raise ParameterError("there are no judgements; name their file in qrels")
    return labels


def make_method(access: FileAccess, spec: str, weights: dict[str, float] | None = None) -> Aggregator:
    """Make a method, or load a model file."""
    from podium import models
    from podium.methods.base import make

    if not spec.endswith(".podium"):
        return make(spec) if weights is None else make(spec, weights=weights)
    if weights is not None:
        raise ParameterError(f"{spec} is a saved model with its own weights; leave weights out")
    model: Aggregator = models.load(access.resolve_file(spec))
    return model


def choose_or_make_method(
    access: FileAccess, spec: str, preferences: Preferences | None, weights: dict[str, float] | None = None
) -> tuple[Aggregator, list[str]]:
    """The same, or what `auto` chooses for the preferences, and its reason as lines of the answer."""
    if spec != "auto":
        return make_method(access, spec, weights), []
    if preferences is None:
        raise ParameterError("auto chooses by lists or votes; give their files, or name a method")
    from podium.methods.automatic_choice import choose_method

    choice = choose_method(preferences, weights=weights)
    return choice.method, [choice.describe()] if choice.reason else []


def select_features(content: Content | None, method: Aggregator) -> Any:
    """Item features for a method that uses them."""
    return content.features if content is not None and method.tags.uses_features else None


def resolve_id(given: Id, known: list[Any], what: str) -> Any:
    """The id itself; text may denote a number, and a number text."""
    resolved = given if given in known else {str(one): one for one in reversed(known)}.get(str(given))
    if resolved is None:
        shown = ", ".join(map(str, known[:5]))
        raise ParameterError(f"there is no {what} {given!r}; there are {shown}{', ...' * (len(known) > 5)}")
    return resolved
