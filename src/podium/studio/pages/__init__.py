"""The studio's pages: server-rendered, one permanent link per view, also as JSON and CSV."""

from podium.studio.pages.job_routes import router as _jobs
from podium.studio.pages.page_routes import router

router.include_router(_jobs)

__all__ = ["router"]
