"""The documentation page: OpenAPI rendered without scripts or external resources."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from fastapi import APIRouter
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

__all__ = ["router"]

router = APIRouter()
WIDE = 110  # maximum characters of a one-line example
LARGE = 2**53  # larger bounds are machine limits and are not shown

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; color: #1c1c1c; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem; }
code, pre { font: 14px/1.4 ui-monospace, monospace; } pre { background: #f4f4f4; padding: .75rem; overflow-x: auto; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #ddd; }
.verb { font-weight: 600; color: #005a9c; } a { color: #005a9c; }
@media (prefers-color-scheme: dark) {
  body { background: #16181c; color: #e6e6e6; } pre { background: #22252b; } th, td, h2 { border-color: #444; }
  a, .verb { color: #7ab8f5; }
}
"""


@router.get("/openapi.json", include_in_schema=False)
async def serve_openapi(request: Request) -> Response:
    """OpenAPI."""
    return Response(to_json(request.app.openapi()), media_type="application/json")


@router.get("/docs/style.css", include_in_schema=False)
async def serve_style() -> Response:
    """The style sheet of the documentation page."""
    return Response(STYLE, media_type="text/css")


@router.get("/docs", include_in_schema=False)
async def serve_docs(request: Request) -> Response:
    """All routes with their requests and responses."""
    return HTMLResponse(_render_page(request.app.openapi()))


def _render_page(api: dict[str, Any]) -> str:
    calls = [(path, verb, call) for path, by in api["paths"].items() for verb, call in by.items()]
    links = "".join(f'<li><a href="#{_format_anchor(p, v)}"><code>{escape(p)}</code></a> {escape(c["summary"])}</li>'
                    for p, v, c in calls)  # fmt: skip
    schemas = api["components"]["schemas"]
    parts = "".join(_render_operation(p, v, c, schemas) for p, v, c in calls)
    kinds = "".join(_render_schema(name, schema) for name, schema in schemas.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Podium: HTTP API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="/docs/style.css"></head><body><main>'
        f"<h1>{escape(api['info']['title'])} {escape(api['info']['version'])}: HTTP API</h1>"
        f"<p>{escape(api['info']['description'])}</p>"
        '<p>For programs: <a href="/openapi.json">openapi.json</a>.</p>'
        f"<nav><ul>{links}</ul></nav>{parts}<h2>Types</h2>{kinds}</main></body></html>"
    )


def _format_anchor(path: str, verb: str) -> str:
    return f"{verb}{path.replace('/', '-')}"


def _render_operation(path: str, verb: str, call: dict[str, Any], schemas: dict[str, Any]) -> str:
    title = f'<span class="verb">{verb.upper()}</span> <code>{escape(path)}</code>'
    head = f'<h2 id="{_format_anchor(path, verb)}">{title}</h2>'
    said = f"<p>{escape(call['summary'])}. {_render_prose(call.get('description', ''))}</p>"
    asked = ""
    if "requestBody" in call:
        name = _schema_name(call["requestBody"]["content"]["application/json"]["schema"])
        example = schemas[name].get("examples", [{}])[0]
        shown = json.dumps(example)
        shown = shown if len(shown) < WIDE else json.dumps(example, indent=2)
        asked = f"<h3>Request</h3>{_render_fields(schemas[name])}<h3>Example</h3><pre>{escape(shown)}</pre>"
    rows = "".join(
        f"<tr><td>{escape(code)}</td><td>{escape(r['description'])}</td><td>{_render_answer(r)}</td></tr>"
        for code, r in sorted(call["responses"].items())
    )
    return f"{head}{said}{asked}<h3>Responses</h3>{_render_table(('status', 'when', 'body'), rows)}"


def _render_answer(response: dict[str, Any]) -> str:
    content = response.get("content", {}).get("application/json")
    return "" if content is None else _render_type(content["schema"])


def _render_schema(name: str, schema: dict[str, Any]) -> str:
    said = _render_prose(schema.get("description", ""))
    return f'<h3 id="type-{escape(name)}">{escape(name)}</h3><p>{said}</p>{_render_fields(schema)}'


def _render_fields(schema: dict[str, Any]) -> str:
    needed = set(schema.get("required", ()))
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{_render_type(about)}</td>"
        f"<td>{'required' if name in needed else _render_default(about)}</td>"
        f"<td>{_render_prose(about.get('description', ''))}</td></tr>"
        for name, about in schema.get("properties", {}).items()
    )
    return _render_table(("field", "type", "default", ""), rows)


def _render_table(head: tuple[str, ...], rows: str) -> str:
    cells = "".join(f'<th scope="col">{h}</th>' for h in head)
    return f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div>'


def _render_default(about: dict[str, Any]) -> str:
    return f"<code>{escape(to_json(about['default']).decode())}</code>" if "default" in about else ""


def _render_prose(text: str) -> str:
    """Render prose with `code` spans."""
    parts = escape(" ".join(text.split())).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))


def _schema_name(schema: dict[str, Any]) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _render_type(about: dict[str, Any]) -> str:
    """A short description of a schema."""
    if "$ref" in about:
        name = escape(_schema_name(about))
        return f'<a href="#type-{name}">{name}</a>'
    for several in ("anyOf", "oneOf"):
        if several in about:
            return " or ".join(dict.fromkeys(_render_type(a) for a in about[several]))
    if "enum" in about or "const" in about:
        values = about.get("enum", [about.get("const")])
        return " | ".join(f"<code>{escape(to_json(v).decode())}</code>" for v in values)
    if about.get("type") == "array":
        return f"array of ({_render_type(about.get('items', {}))})"
    if about.get("type") == "object" and isinstance(about.get("additionalProperties"), dict):
        return f"object of ({_render_type(about['additionalProperties'])})"
    return escape(str(about.get("type", "any"))) + _render_bounds(about)


def _render_bounds(about: dict[str, Any]) -> str:
    words = {"minimum": "from", "maximum": "to", "exclusiveMinimum": "above", "exclusiveMaximum": "below"}
    found = [f"{word} {about[key]:g}" for key, word in words.items() if abs(about.get(key, LARGE)) < LARGE]
    return f" ({' '.join(found)})" if found else ""
