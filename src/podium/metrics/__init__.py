"""Metrics as values: `NDCG @ 10`, parsed from "ndcg@10"; and measures of agreement between two rankings."""

from typing import TYPE_CHECKING

from podium.core import registry
from podium.metrics import binary, correlations, gains
from podium.metrics.base import Metric, MetricSpec, measure, parse, parse_all
from podium.metrics.binary import *  # noqa: F403 - it has an `__all__`
from podium.metrics.correlations import *  # noqa: F403 - it has an `__all__`
from podium.metrics.gains import *  # noqa: F403 - it has an `__all__`

__all__ = ["Metric", "MetricSpec", "measure", "parse", "parse_all"]
__all__ += binary.__all__
__all__ += correlations.__all__
__all__ += gains.__all__

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Metrics of plug-ins, by class name."""
        return registry.metrics.get_class(name, __name__)
