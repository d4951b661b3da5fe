"""LambdaRank over shards: first statistics over all of them, then passes over one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from podium.core.errors import InputError
from podium.core.progress import Progress
from podium.data.features import Features
from podium.data.ids import Id
from podium.learning.feature_scorer import FeatureBlock, FeatureScorer
from podium.learning.shard_cache import (
    PreparedShards,
    ShardBlocks,
    extract_examples,
    read_examples,
    scan_training_shards,
    weights_key,
)
from podium.learning.training_shards import is_empty
from podium.storage.array_files import PreparedArrays

if TYPE_CHECKING:
    from podium.methods.learned.lambdarank import LambdaRank

__all__ = ["FeatureShards"]


class FeatureShards:
    """Shards of features and labels: names and moments of the columns, and blocks to train on."""

    def __init__(
        self,
        model: LambdaRank,
        train: PreparedShards,
        check: PreparedShards,
        weights: Mapping[Id, float],
        progress: Progress,
    ) -> None:
        self.model, self.train, self.check, self.weights = model, train, check, dict(weights)
        self.names: tuple[str, ...] = ()
        self.count, self.mean, self.squares = 0, np.zeros(0), np.zeros(0)
        self.scan = scan_training_shards(
            train, check, self._load_part, self._read_columns, model.plan, progress
        )

    def _load_part(self, shards: PreparedShards, number: int) -> PreparedArrays:
        """A prepared shard: features of the labeled items, missing values 0, and the labels."""
        weights = self.weights if shards is self.train else {}

        def make_part() -> PreparedArrays:
            content = shards.content(number)
            features = Features.from_rows([], [], np.zeros((0, 0))) if is_empty(content) else content.features
            if features is None:
                raise InputError(
                    "it contains no features", remedy="give a LETOR file, or a table with feature columns"
                )
            examples, part = extract_examples(content, features, weights)
            part.arrays["values"] = self.model._prepare_values(features)[examples.rows]
            return PreparedArrays(part.about | {"names": list(features.names)}, part.arrays)

        recipe = f"LambdaRank normalise={self.model.normalize} weights={weights_key(weights)}"
        return shards.get_or_make(number, recipe, make_part)

    def _read_columns(self, shards: PreparedShards, part: PreparedArrays) -> None:
        """Check the columns of a shard, and add those of a training shard to the moments if they are needed."""
        values = part.arrays["values"]
        if part.about["names"]:
            features = Features(read_examples(part).labels.index, values, tuple(part.about["names"]))
            if not self.names:
                self.names = features.names
                self.mean, self.squares = np.zeros(len(self.names)), np.zeros(len(self.names))
            Features.require(features, self.names, self.model.name)
        if shards is self.train and self.model.standardize and len(values):
            # the running mean and centered sum of squares (Chan, Golub & LeVeque 1983)
            here, both = values.mean(axis=0), self.count + len(values)
            apart = here - self.mean
            self.squares += ((values - here) ** 2).sum(axis=0) + apart**2 * (self.count * len(values) / both)
            self.mean += apart * (len(values) / both)
            self.count = both

    def build_scorer(self) -> FeatureScorer:
        """An untrained scorer, scaled to the features of all training shards."""
        width = len(self.names)
        scorer = FeatureScorer(self.model, np.zeros(width), np.ones(width))
        return scorer.with_scale(self.mean, np.sqrt(self.squares / self.count)) if self.count else scorer

    def build_blocks(self, scorer: FeatureScorer, shards: PreparedShards) -> ShardBlocks:
        """The shards as blocks of scaled features; validation blocks are scored on the CPU."""
        training, plan = shards is self.train, self.model.plan
        plan, metric = (plan, self.scan.metric) if training else (replace(plan, device="cpu"), None)

        def load_block(number: int) -> FeatureBlock:
            part = self._load_part(shards, number)
            return FeatureBlock(
                values=np.ascontiguousarray(scorer.scale_values(part.arrays["values"])),
                network=scorer.network,
                examples=read_examples(part),
                plan=plan,
                metric=metric,
                shards=len(shards.used),
            )

        return ShardBlocks(shards, load_block)
