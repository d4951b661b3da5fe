"""Forms with files, as programs send them to the API."""

from __future__ import annotations

import hashlib
from typing import Any

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from podium.core.errors import InputError, ParameterError

MOST_FIELDS, PART = 100, 1 << 20  # of a form: fields, and bytes of a field
FILES: dict[str, Any] = {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1}
TEXT: dict[str, Any] = {"type": "string", "maxLength": 1000}


def describe_form(**fields: dict[str, Any]) -> dict[str, Any]:
    """The description of a form with files and these fields."""
    schema = {"type": "object", "properties": {"files": FILES, **fields}, "required": ["files"]}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


async def read_form(request: Request) -> tuple[dict[str, str], list[tuple[str, bytes]], bytes]:
    """The fields and files of a form, and a digest of both."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise HTTPException(415, "the body is not multipart/form-data")
    try:
        form = await request.form(max_files=501, max_fields=MOST_FIELDS, max_part_size=PART)
    except HTTPException as error:
        raise InputError(
            f"the form cannot be read: {error.detail}", remedy="send multipart/form-data"
        ) from None
    async with request.app.state.uploads:
        try:
            fields = {name: value for name, value in form.multi_items() if isinstance(value, str)}
            parts = [part for part in form.getlist("files") if isinstance(part, UploadFile)]
            files = [(part.filename or "", await part.read()) for part in parts]
        finally:
            await form.close()
    if not files:
        raise ParameterError("the form has no files; send at least one in the field `files`")
    digest = hashlib.sha256(repr(sorted(fields.items())).encode())
    for name, content in files:
        digest.update(repr((name, len(content))).encode() + content)
    return fields, files, digest.digest()
