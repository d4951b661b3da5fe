"""The studio's pages: server-rendered, one permanent link for every view, the same as JSON and CSV."""

from podium.studio.pages.routes import router

__all__ = ["router"]
