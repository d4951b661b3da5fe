"""Downloads over HTTP: rankings, data, votes and the report as files, and the texts of the items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from podium.core.errors import ParameterError
from podium.studio.api import record_models
from podium.studio.api.openapi_schema import describe_route
from podium.studio.api.project_routes import read_store
from podium.studio.api.route_helpers import PAGE, PROJECT, cut_page, name_parameter, read_page
from podium.studio.api.service_routes import PlainRoute, build_json_response
from podium.studio.database import RecordNotFound
from podium.studio.security import RequestRefused

METHOD = name_parameter("m", "query", maxLength=1000) | {
    "description": "the method or model, such as `rrf` or `model:ID`; the first that suits the data without it"
}
SUFFIX = name_parameter("suffix") | {
    "description": "csv, jsonl, parquet, run or soc; json where there is one"
}

VIEW = name_parameter("view")
FIGURE_SUFFIX = name_parameter("suffix") | {"description": "svg, png or json"}
LOOK = (
    name_parameter("theme", "query", enum=["light", "dark"], default="light"),
    name_parameter("width", "query", type="integer", minimum=0, maximum=99999, default=0)
    | {"description": "in pixels; up to 500, the figure is drawn for a phone"},
)

router = APIRouter(route_class=PlainRoute)


async def _download(request: Request, write: Callable[..., Response], *args: str | int) -> Response:
    """The file that a page downloads; a result that takes too long is asked for again."""
    from podium.studio.pages.page_routes import UnreadableProject
    from podium.studio.pages.view_context import StillComputing

    try:
        return await run_in_threadpool(write, request, request.path_params["project"], *args)
    except UnreadableProject as error:
        raise error.reason from None
    except StillComputing:
        again = {"retry-after": "5"}
        raise RequestRefused(503, "the result is still being computed", "try again later", again) from None


def _describe(summary: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    return describe_route(
        None, bytes, summary, 404, 413, 422, 503, tag="projects", parameters=(PROJECT, *parameters)
    )


@router.get(
    "/v1/projects/{project}/ranking.{suffix}",
    **_describe("The ranking of all queries as a file", SUFFIX, METHOD),
)
async def download_ranking(request: Request) -> Response:
    """A TREC run, CSV, JSON, JSON lines or Parquet, as on the Share page."""
    from podium.studio.pages import share_routes

    return await _download(request, share_routes.download_ranking, request.path_params["suffix"])


@router.get(
    "/v1/projects/{project}/cleaned.{suffix}",
    **_describe("The data as a file, without excluded annotators", SUFFIX),
)
async def download_cleaned(request: Request) -> Response:
    """What all views are computed from, with collected votes."""
    from podium.studio.pages import worker_routes

    return await _download(request, worker_routes.download_cleaned, request.path_params["suffix"])


@router.get(
    "/v1/projects/{project}/votes.{suffix}",
    **_describe(
        "The collected votes as a file",
        SUFFIX | {"description": "csv, jsonl, parquet, soc or arena.jsonl; json has every vote"},
    ),
)
async def download_votes(request: Request) -> Response:
    """The counted votes in every format; in JSON every vote with its circumstances."""
    from podium.studio.pages import share_routes

    return await _download(request, share_routes.download_votes, request.path_params["suffix"])


@router.get("/v1/projects/{project}/report.html", **_describe("The report as one HTML file", METHOD))
async def download_report(request: Request) -> Response:
    """A page that needs no server; `m` may be repeated."""
    from podium.studio.pages import share_routes

    return await _download(request, share_routes.download_report)


# -- figures -------------------------------------------------------------------------------------------------------


@router.get(
    "/v1/projects/{project}/views/{view}/figures",
    **describe_route(
        None, record_models.FigureListAnswer, "The figures of a view", 404, 413, 422, 503, 504, tag="projects",
        parameters=(PROJECT, VIEW),
    ),
)  # fmt: skip
async def list_figures(request: Request) -> Response:
    """Names and captions; the parameters are those of the page."""
    from podium.studio.pages import page_routes

    def list_all(_: Request, project: str) -> Response:
        figures = page_routes.list_figures(request, project, request.path_params["view"])
        return build_json_response({"figures": [{"name": f.name, "caption": f.caption} for f in figures]})

    return await _download(request, list_all)


@router.get(
    "/v1/projects/{project}/views/{view}/figures/{figure}.{suffix}",
    **_describe("A figure of a view as a file", VIEW, name_parameter("figure"), FIGURE_SUFFIX, *LOOK),
)
async def download_figure(request: Request) -> Response:
    """SVG or PNG, or in JSON the chart as Vega-Lite; the other parameters are those of the page."""
    from podium.studio.pages import page_routes, share_routes

    view, figure, suffix = (request.path_params[name] for name in ("view", "figure", "suffix"))
    if suffix == "png":
        return await _download(request, share_routes.download_picture, view, figure)
    if suffix not in ("svg", "json"):
        raise RecordNotFound("there is no such download; choose one of svg, png, json")
    theme, width = request.query_params.get("theme", "light"), request.query_params.get("width", "0")
    if theme not in ("light", "dark") or not width.isdecimal() or not width.isascii() or len(width) > 5:
        raise ParameterError("accepted: theme light or dark, width a number of pixels")
    return await _download(
        request, page_routes.show_picture, view, figure, int(suffix == "json"), theme, int(width)
    )


@router.get(
    "/v1/projects/{project}/texts",
    **describe_route(
        None, record_models.TextListAnswer, "The texts of the items", 404, 422, tag="projects",
        parameters=(PROJECT, *PAGE),
    ),
)  # fmt: skip
async def list_texts(request: Request) -> Response:
    """Titles, texts and addresses that stand beside items, from added tables and from the files."""
    (store, project), page = read_store(request), read_page(request)

    def list_page() -> dict[str, Any]:
        texts = request.app.state.workspace.data(store.project(project)).result().texts
        part, further = cut_page(list(texts), page, str)
        return {"texts": [{"item": str(item)} | vars(texts[item]) for item in part], "next": further}

    return build_json_response(await run_in_threadpool(list_page))
