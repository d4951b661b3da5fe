"""Shards that are read repeatedly: their prepared forms, and statistics over all of them."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError, ParameterError
from podium.core.progress import Progress
from podium.core.version import __version__
from podium.data.features import Features
from podium.data.ids import Id, Ids
from podium.data.index import ItemIndex
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.formats import Content
from podium.learning.examples import Examples
from podium.learning.plan import Plan
from podium.learning.trainer import Block
from podium.learning.training_shards import ShardFiles, TrainingShard, check_shards, read_shard
from podium.metrics.base import Metric, MetricSpec, parse
from podium.storage.array_files import LAYOUT, PreparedArrays
from podium.storage.digests import digest_values
from podium.storage.folder_cache import ArrayCache, CacheOption, open_array_cache

__all__ = [
    "PreparedShards",
    "ShardBlocks",
    "ShardCounts",
    "ShardScan",
    "extract_examples",
    "narrow_integers",
    "open_prepared_shards",
    "read_examples",
    "scan_training_shards",
    "weights_key",
]

T = TypeVar("T")


class PreparedShards:
    """Shards and their prepared forms, cached in files or computed anew each time."""

    def __init__(
        self,
        shards: Sequence[TrainingShard],
        cache: ArrayCache,
        *,
        kind: str | None = None,
        what: str = "shard",
    ):
        self.shards, self.cache, self.kind, self.what = list(shards), cache, kind, what
        self.digests: dict[int, tuple[str, object]] = {}  # with the modification times of the files
        self.used: list[int] = []  # shards with labeled items, once known
        if cache.persistent:
            for shard in shards:
                if not isinstance(shard, ShardFiles):
                    raise ParameterError(
                        f"a shard is a {type(shard).__name__}, which a persistent cache cannot identify; "
                        "give files, or cache=True"
                    )

    def __len__(self) -> int:
        return len(self.shards)

    def describe_shard(self, number: int) -> str:
        """The name of a shard in messages."""
        shard = self.shards[number]
        files = f" ({', '.join(map(str, shard.paths))})" if isinstance(shard, ShardFiles) else ""
        return f"{self.what} {number + 1}{files}"

    def wrap_error(self, number: int, error: InputError) -> InputError:
        """An error that names the shard; an error about a file already does."""
        where = f"{self.what} {number + 1}" if error.source is not None else self.describe_shard(number)
        return InputError(f"{where}: {error}")

    def content(self, number: int) -> Content:
        """Read a shard."""
        return read_shard(self.shards[number], self.kind)

    def get_or_make(self, number: int, recipe: str, make: Callable[[], PreparedArrays]) -> PreparedArrays:
        """The result of `make` for a shard; `recipe` identifies everything else that it depends on."""

        def make_unchanged() -> PreparedArrays:
            made, shard, known = make(), self.shards[number], self.digests.get(number)
            # the files must not have changed since the key was computed
            if known is not None and isinstance(shard, ShardFiles) and shard.stamp != known[1]:
                remedy = "start again when all are written"
                raise InputError("a file changed while it was read", remedy=remedy)
            return made

        def compute_key() -> str:
            name = f"{self.what} {number}"  # sufficient in a temporary cache
            if self.cache.persistent:
                shard = self.shards[number]
                assert isinstance(shard, ShardFiles)
                if number not in self.digests:
                    stamp = shard.stamp  # before the digest, which reads the files
                    self.digests[number] = shard.digest, stamp
                name = self.digests[number][0]
            return digest_values([LAYOUT, __version__, name, recipe])

        return self.cache.get_or_make(compute_key, make_unchanged)

    def iterate_prepared(
        self, prepare: Callable[[int], T], order: Iterable[int] | None = None
    ) -> Generator[T]:
        """The prepared shards in order; the next is prepared while one is used. Close it when leaving early."""

        def prepare_shard(number: int) -> T:
            try:
                return prepare(number)
            except InputError as error:
                raise self.wrap_error(number, error) from None

        with ThreadPoolExecutor(1) as pool:
            waiting = None
            for number in range(len(self)) if order is None else order:
                coming = pool.submit(prepare_shard, number)
                if waiting is not None:
                    yield waiting.result()
                waiting = coming
            if waiting is not None:
                yield waiting.result()


@contextmanager
def open_prepared_shards(
    shards: Sequence[TrainingShard],
    validation: Sequence[TrainingShard],
    cache: CacheOption,
    kind: str | None = None,
) -> Iterator[tuple[PreparedShards, PreparedShards]]:
    """Training and validation shards, as given to `fit_stream`; `kind` determines how files are read."""
    train = check_shards(shards)
    check = check_shards(validation, "validation") if len(validation) else []
    with open_array_cache(cache) as kept:
        yield (
            PreparedShards(train, kept, kind=kind),
            PreparedShards(check, kept, kind=kind, what="validation shard"),
        )


# -- examples in prepared shards ---------------------------------------------------------------------------


def extract_examples(
    content: Content, holder: Preferences | Features, weights: dict[Id, float]
) -> tuple[Examples, PreparedArrays]:
    """The examples of a shard, and arrays that hold them; ids are omitted, as only their order matters."""
    labels = content.labels
    if labels is None and len(holder.index):
        raise InputError("it contains no labels", remedy="a shard must contain the labels of its queries")
    if labels is not None and labels.kind != "grades":
        raise InputError(f"its labels are {labels.kind}", remedy="shards need grades; fit in memory instead")
    if labels is not None and not np.isnan(labels.align(holder.index)).all():
        examples = Examples.from_labels(holder.index, labels, weights, require_signal=False)
    else:
        index = ItemIndex(Ids([]), np.zeros(1, np.int64), Ids([]), np.zeros(0, np.int32))
        examples = Examples(Labels(index, np.zeros(0)), np.zeros(0, np.int64), np.zeros(0))
    about = {"top": float(examples.labels.grades.max(initial=0.0))}
    text = json.dumps(holder.index.queries.tolist()).encode()
    arrays: dict[str, npt.NDArray[Any]] = {
        "queries": np.frombuffer(text, np.uint8),
        "grades": examples.labels.grades,
        "starts": examples.starts,
        "weight": examples.weight,
    }
    return examples, PreparedArrays(about, arrays)


def read_examples(part: PreparedArrays) -> Examples:
    """The examples of a prepared shard, with numbers for ids."""
    starts, grades = part.arrays["starts"], part.arrays["grades"]
    count = len(grades)
    queries, items = Ids(np.arange(len(starts) - 1)), Ids(np.arange(count))
    index = ItemIndex(queries, starts, items, np.zeros(count, np.int32))
    return Examples(Labels(index, grades), np.arange(count), part.arrays["weight"])


def weights_key(weights: Mapping[Id, float]) -> str:
    """The query weights as a part of a recipe."""
    return digest_values(repr(sorted(weights.items(), key=repr))) if weights else ""


def narrow_integers(numbers: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
    """Codes as 32-bit integers, where they fit."""
    return numbers.astype(np.int32) if numbers.max(initial=0) < 2**31 else numbers


@dataclasses.dataclass(frozen=True)
class ShardBlocks:
    """Prepared shards as blocks; the next one is loaded while one is used."""

    shards: PreparedShards
    load: Callable[[int], Block]

    def iterate_blocks(self, random: np.random.Generator | None = None) -> Generator[Block]:
        """The shards with labels, in random order where a generator is given."""
        order = self.shards.used
        if random is not None and len(order) > 1:  # a single shard consumes no random number
            order = [order[k] for k in random.permutation(len(order))]
        with closing(self.shards.iterate_prepared(self.load, order)) as blocks:
            for block in blocks:
                yield block
                # what metrics cached references the labels and they reference it, which delays its release
                block.examples.labels.memo.clear()


# -- statistics over all shards ----------------------------------------------------------------------------


class ShardCounts(NamedTuple):
    """Counts of a `fit_stream` run; not part of a saved model."""

    shards: int
    queries: int  # with labels
    validation_shards: int = 0
    validation_queries: int = 0


class ShardScan(NamedTuple):
    """Results of a first pass over all shards, where the metrics have the highest grade of all as their top."""

    counts: ShardCounts
    metric: Metric
    choose_by: Metric


def scan_training_shards(
    train: PreparedShards,
    check: PreparedShards,
    load: Callable[[PreparedShards, int], PreparedArrays],
    look: Callable[[PreparedShards, PreparedArrays], None],
    plan: Plan,
    progress: Progress,
) -> ShardScan:
    """Read all shards once; `look` receives each of them. A query must lie in one of them only."""
    where: dict[tuple[type, Id], str] = {}  # the shard of every query
    totals = []
    for shards in (train, check):
        judged = useful = 0
        top = 0.0
        with closing(shards.iterate_prepared(functools.partial(load, shards))) as parts:
            for number, part in enumerate(parts):
                shard = shards.describe_shard(number)
                for query in json.loads(part.arrays["queries"].tobytes()):
                    before = where.setdefault((type(query), query), shard)
                    if before != shard:
                        remedy = "put all rows of a query into one shard, of training or of validation"
                        raise InputError(f"{shard}: query {query!r} is also in {before}", remedy=remedy)
                examples = read_examples(part)
                judged += int((np.diff(examples.starts) > 0).sum())
                useful += len(examples.find_useful_queries())
                top = max(top, part.about["top"])
                try:
                    look(shards, part)
                except InputError as error:
                    raise shards.wrap_error(number, error) from None
                if len(examples):
                    shards.used.append(number)
                progress(number + 1, len(shards), f"reading {shards.what}s")
        if len(shards) and not judged:
            raise InputError(
                f"no query of any {shards.what} has labels",
                remedy="query and item ids are compared exactly, case and type included",
            )
        if shards is train and not useful:
            raise InputError(
                "no query of any shard has items of different grades",
                remedy="learning needs better and worse items in one query: label both",
            )
        totals.append((len(shards), judged, top))
    (shards_read, judged, top), (more_shards, more_judged, more_top) = totals
    return ShardScan(
        ShardCounts(shards_read, judged, more_shards, more_judged),
        _fix_max_grade(plan.metric, top),
        _fix_max_grade(plan.choose_by, more_top),
    )


def _fix_max_grade(metric: MetricSpec, top: float) -> Metric:
    """The metric with a fixed top of the grading scale, which would otherwise depend on the shard's labels."""
    fixed = parse(metric)
    if getattr(fixed, "max_grade", top) is None:
        fixed = dataclasses.replace(fixed, max_grade=top)  # type: ignore[call-arg]
    return fixed
