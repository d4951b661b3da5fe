"""The documentation page: OpenAPI rendered without scripts or external resources."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter
from markupsafe import Markup, escape
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from podium.studio.pages.render import read_static, render_page

router = APIRouter(include_in_schema=False)
WIDE = 110  # maximum characters of a one-line example
LARGE = 2**53  # larger bounds are machine limits and are not shown


@router.get("/openapi.json")
async def serve_openapi(request: Request) -> Response:
    """OpenAPI."""
    return Response(to_json(request.app.openapi()), media_type="application/json")


@router.get("/docs/style.css")
async def serve_style() -> Response:
    """The style sheet of the documentation page."""
    return Response(read_static("docs.css"), media_type="text/css")


@router.get("/docs")
async def serve_docs(request: Request) -> Response:
    """All routes with their requests and responses."""
    api = request.app.openapi()
    calls = []
    for path, by_verb in api["paths"].items():
        for verb, call in by_verb.items():
            schema = None
            if "requestBody" in call:
                [content] = call["requestBody"]["content"].values()
                schema = content["schema"]
                schema = api["components"]["schemas"][_schema_name(schema)] if "$ref" in schema else schema
            calls.append((path, verb, call, schema))
    helpers = {"type": _render_type, "prose": _render_prose, "json": _format_json, "example": _format_example}
    return HTMLResponse(render_page("docs.html", api=api, calls=calls, **helpers))


def _format_example(schema: dict[str, Any]) -> str:
    example = schema.get("examples", [{}])[0]
    line = json.dumps(example)
    return line if len(line) < WIDE else json.dumps(example, indent=2)


def _format_json(value: Any) -> str:
    return to_json(value).decode()


def _render_prose(text: str) -> Markup:
    """Render prose with `code` spans."""
    parts = escape(" ".join(text.split())).split("`")
    return Markup().join(Markup("<code>{}</code>").format(p) if i % 2 else p for i, p in enumerate(parts))


def _schema_name(schema: dict[str, Any]) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _render_type(about: dict[str, Any]) -> Markup:
    """A short description of a schema."""
    if "$ref" in about:
        name = _schema_name(about)
        return Markup('<a href="#type-{}">{}</a>').format(name, name)
    for several in ("anyOf", "oneOf"):
        if several in about:
            return Markup(" or ").join(dict.fromkeys(_render_type(a) for a in about[several]))
    if "enum" in about or "const" in about:
        values = about.get("enum", [about.get("const")])
        return Markup(" | ").join(Markup("<code>{}</code>").format(_format_json(v)) for v in values)
    if about.get("type") == "array":
        return Markup("array of ({})").format(_render_type(about.get("items", {})))
    if about.get("type") == "object" and isinstance(about.get("additionalProperties"), dict):
        return Markup("object of ({})").format(_render_type(about["additionalProperties"]))
    words = {"minimum": "from", "maximum": "to", "exclusiveMinimum": "above", "exclusiveMaximum": "below"}
    bounds = [f"{word} {about[key]:g}" for key, word in words.items() if abs(about.get(key, LARGE)) < LARGE]
    return escape(about.get("type", "any")) + (f" ({' '.join(bounds)})" if bounds else "")
