"""Reading the data sets of the published tables from a folder."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from podium import formats
from podium.core.errors import InputError, ParameterError
from podium.core.params import suggest_names
from podium.data.building.subset import restrict_items
from podium.data.dataset import Dataset
from podium.data.ids import Id
from podium.data.labels import Labels

__all__ = ["labeled_items", "load_dataset", "with_features", "without_experts"]


def load_dataset(name: str, folder: str | os.PathLike[str]) -> Dataset:
    """A data set by name; its files are in a folder of that name, compressed with gzip or not."""
    if name not in READERS:
        raise ParameterError(f"there is no data set {name!r}; {suggest_names(name, READERS)}")
    if not Path(folder).is_dir():
        raise InputError(
            "there is no such folder", source=os.fspath(folder), remedy="give the folder with the data sets"
        )
    return dataclasses.replace(READERS[name](Path(folder) / name), name=name)


def labeled_items(data: Dataset) -> Dataset:
    """The preferences restricted to labeled items."""
    if data.labels is None:
        return data
    keep = ~np.isnan(data.labels.align(data.preferences.index))
    return dataclasses.replace(data, preferences=restrict_items(data.preferences, keep))


def without_experts(data: Dataset, experts: Sequence[Id]) -> Dataset:
    """The data without some of the experts."""
    kept = [e for e in data.preferences.experts if e not in experts]
    return dataclasses.replace(data, preferences=data.preferences.with_experts(kept))


def with_features(data: Dataset, name: str, folder: str | os.PathLike[str]) -> Dataset:
    """The data with the item features of another LETOR set on the same documents."""
    files = [_find_file(Path(folder) / name, f"S{part}.txt") for part in range(1, 6)]
    return dataclasses.replace(data, features=formats.read(files, "letor").features)


def _read_letor_parts(folder: Path) -> Dataset:
    """A LETOR set in five parts."""
    return formats.read([_find_file(folder, f"A{part}.txt") for part in range(1, 6)], "letor").dataset()


def _feature_reader(*names: str) -> Callable[[Path], Dataset]:
    """A LETOR set of item features; the files are its parts, and there are no rankings."""

    def read(folder: Path) -> Dataset:
        return formats.read([_find_file(folder, name) for name in names], "letor", kind="features").dataset()

    return read


def _read_crowd(folder: Path) -> Dataset:
    """Workers' judgements, 0 or 1, and gold labels for some of the documents."""
    columns = {"score": "label_binary", "grade": "gold_binary"}
    path = _find_file(folder, "judgments.tsv")
    return formats.read(path, "csv", duplicates="first", missing="-1", **columns).dataset()


def _read_melodies(folder: Path) -> Dataset:
    """Votes on which of two melodies is closer to a third; the collectors' groups (1: closest) as grades."""
    votes = formats.read(_find_file(folder, "judgments.csv"), "csv", missing="").preferences
    columns = ("source", "query", "item", "grade")
    groups = formats.read(_find_file(folder, "MTurk.qrel"), "csv", columns=columns, delimiter="\t").labels
    assert votes is not None
    assert groups is not None
    return Dataset(votes, Labels(groups.index, np.maximum(5 - groups.grades, 0.0)))


def _read_reading_levels(folder: Path) -> Dataset:
    """Votes on which of two texts is harder to read, and the school grades of the texts."""
    columns = ("expert", "winner", "loser")
    path = _find_file(folder, "all_pair.txt")
    votes = formats.read(path, "csv", columns=columns, delimiter=" ", self_votes="skip").preferences
    grades = formats.read(
        _find_file(folder, "doc_info.txt"), "csv", columns=("item", "grade"), delimiter=" "
    ).labels
    assert votes is not None
    return Dataset(votes, grades)


def _find_file(folder: Path, name: str) -> Path:
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            return path
    raise InputError(
        "there is no such file, compressed (.gz) or not",
        source=str(folder / name),
        remedy=f"give the folder that holds {folder.name}/{name}",
    )


READERS: dict[str, Callable[[Path], Dataset]] = {
    "mq2008-agg": _read_letor_parts,
    "mq2007-agg": _read_letor_parts,
    "trec2011-crowd": _read_crowd,
    "mirex2005": _read_melodies,
    "reading-level": _read_reading_levels,
    "mslr-web10k-sample": _feature_reader("train.5k.txt", "test.5k.txt"),
    "mq2008": _feature_reader(*(f"S{part}.txt" for part in range(1, 6))),
    "ohsumed": _feature_reader(*(f"Fold{part}.test.txt" for part in range(1, 6))),
}
