"""pandas: importing this module gives every dataframe the accessor `df.podium`."""

from __future__ import annotations

from typing import ClassVar

from podium.core.optional import require_module
from podium.data.frames import FrameBackend
from podium.integrations.frame_accessor import FrameAccessor

__all__ = ["PandasAccessor"]


class PandasAccessor(FrameAccessor):
    """`df.podium.fuse(...)` for pandas."""

    backend: ClassVar[FrameBackend] = "pandas"


require_module("pandas").api.extensions.register_dataframe_accessor("podium")(PandasAccessor)
