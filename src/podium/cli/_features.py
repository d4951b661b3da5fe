"""Shared by verbs that read feature files: reading them and naming columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podium.cli import _common as common
from podium.core.errors import InputError

if TYPE_CHECKING:
    from podium.data.features import Features
    from podium.formats import Content

names_option = click.option(
    "--names",
    type=click.Path(dir_okay=False),
    help="Names of the columns: a text file with one name per line, or one column number and name per line.",
)


def read_features(
    files: Sequence[str], format_: str | None, options: Sequence[str], names: str | None
) -> tuple[Content, Features]:
    """Read feature files of any format; rename their columns if a file of names is given."""
    content = common.read_feature_files(files, format_, options)
    features = content.features
    assert features is not None
    return content, features if names is None else rename_columns(features, names)


def rename_columns(features: Features, path: str) -> Features:
    """The same features with the column names in a file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})", source=path
        ) from None
    lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    numbered = [line.split(None, 1) for _, line in lines]
    if lines and all(len(words) == 2 and words[0] in features.names for words in numbered):
        by_column = {words[0]: words[1] for words in numbered}
        new = [by_column.get(name, name) for name in features.names]
    elif len(lines) == len(features.names):
        new = [line for _, line in lines]
    else:
        raise InputError(
            f"{len(lines)} names for {len(features.names)} columns",
            source=path,
            remedy="give one name per line for every column, or one column number and name per line",
        )
    if len(set(new)) < len(new):
        twice = next(n for n in new if new.count(n) > 1)
        raise InputError(
            f"two columns would be called {twice!r}", source=path, remedy="give every column its own name"
        )
    return dataclasses.replace(features, names=tuple(new))
