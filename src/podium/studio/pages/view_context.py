"""The input and output of a view; pages, JSON and CSV show the same content."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from podium.core import registry
from podium.core.errors import ParameterError, PodiumError
from podium.core.registry import Registry
from podium.data.ids import Id, Ids
from podium.methods.base import Aggregator
from podium.reporting.blocks import Block
from podium.reporting.inputs import ReportInputs
from podium.studio.answer_card import AnswerCard, AnswerFile, build_answer_card
from podium.studio.item_texts import ItemText
from podium.studio.job_queue import Job
from podium.studio.limits import check_pairs
from podium.studio.loading import ProjectData
from podium.studio.store import Project
from podium.studio.workspace import Workspace

# what a reader wants to do; the navigation groups the views by it, in this order
GOALS = ("Data", "Results", "Explain", "Improve", "Collect", "Share")
METRICS = ("ndcg@10", "map", "mrr", "p@10", "recall@100", "err@10", "ndcg@5", "ndcg")


class StillComputing(Exception):
    """Not computed yet: show what is known and refresh later."""


@dataclass(frozen=True)
class View:
    """The content of a view: blocks (or a template with its values), plain values, and a table."""

    title: str
    document: Any
    head: Sequence[str]
    rows: Iterable[Sequence[Any]]
    blocks: Sequence[Block] = ()
    template: str = "view.html"
    more: dict[str, Any] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)  # of the rows of its tables, by their first cell


@dataclass(frozen=True)
class ViewContext:
    """One request for a view of a project. `parameters` are those of the URL."""

    work: Workspace
    project: Project
    data: ProjectData
    parameters: Sequence[tuple[str, str]]
    patient: bool = True  # wait up to the request timeout
    problem: PodiumError | None = None  # why the files cannot be read; `data` is then empty

    # -- state in the URL --------------------------------------------------------------------------------------

    def get_value(self, name: str, default: str = "") -> str:
        """The last value of a URL parameter."""
        values = [v for k, v in self.parameters if k == name and v.strip()]
        return values[-1].strip() if values else default

    def get_values(self, name: str) -> list[str]:
        """All distinct values of a URL parameter."""
        return list(dict.fromkeys(v.strip() for k, v in self.parameters if k == name and v.strip()))

    def get_whole_number(self, name: str, default: int, low: int, high: int) -> int:
        """An integer parameter between two bounds."""
        text = self.get_value(name, str(default))
        if not text.lstrip("-").isdecimal() or len(text) > 12 or not low <= int(text) <= high:
            raise ParameterError(f"{name} is {text!r}; accepted: whole numbers from {low:,} to {high:,}")
        return int(text)

    def build_link(self, view: str, *pairs: tuple[str, Any]) -> str:
        """The permanent link of a view, below the sub-path of the server: scripts and programs use it as it is."""
        given = [(k, v) for k, v in pairs if v not in (None, "")]
        place = f"{self.work.settings.root_path}/p/{self.project.id}/{view}"
        return place + (f"?{urlencode(given)}" if given else "")

    def query(self) -> Id:
        """The requested query, or the first one."""
        queries = self.data.preferences.queries
        text = self.get_value("q")
        return resolve_id(text, queries, "query") if text else queries[0]

    # -- data ---------------------------------------------------------------------------------------------------

    def methods(self) -> list[str]:
        """Names of the methods that need no training on these data."""
        forms, every = self.data.preferences.forms, registry.aggregators.all()
        tags = {name: method.tags for name, method in every.items()}
        usable = {name: t for name, t in tags.items() if forms <= t.accepts}
        return sorted(n for n, t in usable.items() if not t.supervised and not t.uses_features)

    def models(self) -> dict[str, str]:
        """Fitted models of this project: specification and display name."""
        return {f"model:{m.id}": f"{m.name}" for m in self.work.store.models(self.project.id)}

    @functools.cached_property
    def default_method(self) -> str:
        """The method of the answer, if a page has computed it; otherwise the first that suits the data."""
        card = self.peek_answer()
        if card is not None and card.spec:
            with contextlib.suppress(PodiumError):  # such as too many items for it
                check_pairs(self.work.settings.limits, self.data.preferences, self.work.method(card.spec))
                return card.spec
        return next(iter(self.work.choose_methods(self.data)))

    def method(self, name: str = "m") -> tuple[str, Aggregator]:
        """The requested method, or the default one, as text and as an object."""
        spec = self.get_value(name) or self.default_method
        made: Aggregator = self.work.method(spec)
        return spec, made

    def select_features(self, method: Aggregator) -> Any:
        """Item features, for methods that use them."""
        return self.data.features if method.tags.uses_features else None

    @functools.cached_property
    def texts(self) -> dict[str, ItemText]:
        """What is known about the items, by their ids as text: from tables, and from the collection of votes."""
        collected = self.work.votes.item_texts(self.project.id)
        own = {str(item): ItemText(about.title, about.body, about.url) for item, about in collected.items()}
        return {**self.data.texts, **own}

    def collect_inputs(
        self, methods: Sequence[str] = (), metrics: Sequence[str] = ("ndcg@10", "map")
    ) -> ReportInputs:
        """The report inputs; raises `StillComputing` on a page that should not wait."""
        inputs: ReportInputs = self.wait(self.work.collect_inputs(self.data, methods, metrics))
        return inputs

    def find_answer(self) -> AnswerCard:
        """The answer of the project; raises `StillComputing` on a page that should not wait."""
        kept, jobs = self._locate_answer()
        answer = kept.read()
        if answer is None:
            inputs = self.collect_inputs()
            key = (kept.path.name, "answer")
            answer = self.wait(self.work.result(key, lambda: build_answer_card(inputs, jobs, self.texts)))
            kept.write(answer)
        return answer

    def _locate_answer(self) -> tuple[AnswerFile, list[Job]]:
        every = self.work.store.jobs(self.project.id)
        jobs = [job for job in every if not job.is_stale(self.data.fingerprint)]
        # only the answer of votes is an item, which has a title
        texts = self.texts if "leaderboard" in self.data.kinds else {}
        return AnswerFile(self.work.store.folder, self.data.fingerprint, jobs, texts), jobs

    def peek_answer(self) -> AnswerCard | None:
        """The answer, if a page has computed it already; nothing is awaited."""
        return self._locate_answer()[0].read()

    def wait(self, coming: Future[Any]) -> Any:
        """The result of a computation; raises `StillComputing` if it exceeds the patience of this request."""
        try:
            settings = self.work.settings
            return coming.result(settings.limits.seconds if self.patient else settings.patience)
        except TimeoutError:
            raise StillComputing(self.project) from None


@dataclass
class ProjectView:
    """A registered view: the function that builds it, and its place in the navigation."""

    build: Callable[[ViewContext], View]
    title: str = ""  # in the navigation; empty: not listed there
    order: float = 0.0
    within: str = ""  # the listed view from which this one is reached
    applies: Callable[[ProjectData], bool] = lambda _: True  # to which data; it is listed only for them
    page: bool = True  # False: plain values only
    goal: str = "Results"  # one of `GOALS`
    first_for: str = ""  # the kind of data (see `ProjectData.kinds`) that opens with this view
    needs_data: bool = True  # False: shown even where the files of the project cannot be read
    quick: bool = False  # computed by the server itself, in a few milliseconds, not by a process of its own

    def __post_init__(self) -> None:
        if self.goal not in GOALS:
            raise ParameterError(f"a view serves {self.goal!r}; accepted: {', '.join(GOALS)}")
        functools.update_wrapper(self, self.build)

    def __call__(self, context: ViewContext) -> View:
        """Build the view."""
        return self.build(context)


# every module of this package and every plug-in may register views
views: Registry[ProjectView] = Registry("view", "podium.studio.pages")


def register_view(name: str, *about: Any, **more: Any) -> Callable[[Callable[..., View]], ProjectView]:
    """Register the decorated function as the view at /p/PROJECT/NAME; the rest is as in `ProjectView`."""

    def register_function(build: Callable[[ViewContext], View]) -> ProjectView:
        view = ProjectView(build, *about, **more)
        views.add(name, view)
        return view

    return register_function


def id_text(value: Id, ids: Ids | None = None) -> str:
    """The URL form of an id; a number that also occurs as text gets a prefix.

    >>> id_text("5"), id_text(5), id_text(5, Ids([5, "5"]))
    ('5', '5', 'int:5')
    """
    if isinstance(value, str):
        return value
    twice = ids is not None and ids.code_of(str(value)) is not None
    return f"int:{value}" if twice else str(value)


def item_texts(items: Iterable[Id]) -> dict[Id, str]:
    """The URL forms of the items of a query.

    >>> item_texts(["a", 5, "5"])
    {'a': 'a', 5: 'int:5', '5': '5'}
    """
    every = list(items)
    words = {i for i in every if isinstance(i, str)}
    return {i: f"int:{i}" if not isinstance(i, str) and str(i) in words else str(i) for i in every}


def resolve_id(text: str, ids: Ids, what: str) -> Id:
    """The id that a URL form denotes.

    >>> both = Ids([5, "5"])
    >>> resolve_id("5", both, "query"), resolve_id("int:5", both, "query"), resolve_id("5", Ids([5]), "query")
    ('5', 5, 5)
    """
    if ids.code_of(text) is not None:
        return text
    number = text.removeprefix("int:")
    if len(number) < 20 and number.removeprefix("-").isdecimal() and number.isascii():
        whole = int(number)
        if ids.code_of(whole) is not None:
            return whole
    raise ParameterError(f"there is no {what} {text[:100]!r}; choose one from the list")
