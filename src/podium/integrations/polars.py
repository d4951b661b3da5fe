"""polars: importing this module gives every dataframe and every lazy frame the namespace `df.podium`."""

from __future__ import annotations

from typing import ClassVar

from podium.core.optional import require_module
from podium.data.frames import FrameBackend
from podium.integrations.frame_accessor import FrameAccessor

__all__ = ["PolarsNamespace"]


class PolarsNamespace(FrameAccessor):
    """`df.podium.fuse(...)` for polars; a lazy frame is collected."""

    backend: ClassVar[FrameBackend] = "polars"


_api = require_module("polars").api
_api.register_dataframe_namespace("podium")(PolarsNamespace)
_api.register_lazyframe_namespace("podium")(PolarsNamespace)
