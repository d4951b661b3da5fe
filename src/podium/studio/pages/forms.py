"""Read the forms of the pages: fields, files and CSRF token, completely and within limits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from podium.core.errors import InputError
from podium.studio import security
from podium.studio.form_fields import FIELDS
from podium.studio.pages import projects

__all__ = ["SubmittedForm", "read_form"]

MOST_FIELDS, PART = 100, 1 << 20  # maximum per form


class SubmittedForm:
    """The fields and files of a form, read completely."""

    def __init__(self, fields: dict[str, str], files: list[tuple[str, bytes]]) -> None:
        self.files, self._fields = files, fields

    def __getitem__(self, name: str) -> str:
        return self._fields.get(name, "").strip()

    @property
    def options(self) -> dict[str, str]:
        """The reading options as entered."""
        return {name: self[name] for name in FIELDS}


@contextlib.asynccontextmanager
async def _reserve_upload(request: Request) -> AsyncIterator[None]:
    """Hold one of the slots for uploads in memory; other uploads wait on disk."""
    limits, places = request.app.state.settings.limits, request.app.state.uploads
    try:
        async with asyncio.timeout(limits.seconds):
            await places.acquire()
    except TimeoutError:
        many = "1 upload was" if limits.uploads == 1 else f"{limits.uploads} uploads were"
        busy = f"{many} being read for {limits.seconds:g} seconds"
        raise security.RequestRefused(503, busy, "try again later", {"retry-after": "5"}) from None
    try:
        yield
    finally:
        places.release()


async def read_form(request: Request, held: contextlib.AsyncExitStack | None = None) -> SubmittedForm:
    """Read a form; its files are read only after `held` has acquired a slot."""
    try:
        form = await request.form(max_files=projects.FILES + 1, max_fields=MOST_FIELDS, max_part_size=PART)
    except HTTPException as error:
        raise InputError(f"the form cannot be read: {error.detail}", remedy="reload the page") from None
    try:
        fields = {k: v for k, v in form.multi_items() if isinstance(v, str)}
        security.check_csrf(request, fields.get("csrf"))
        chosen = [f for f in form.getlist("files") if isinstance(f, UploadFile) and (f.filename or f.size)]
        if held is None or not chosen:
            return SubmittedForm(fields, [])
        await held.enter_async_context(_reserve_upload(request))
        return SubmittedForm(fields, [(f.filename or "", await f.read()) for f in chosen])
    finally:
        await form.close()
