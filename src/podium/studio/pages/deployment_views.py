"""The configuration of a search engine that ranks as a method or model does."""

from __future__ import annotations

from podium.core import registry
from podium.core.errors import ParameterError
from podium.deployment import Deployment, OrderCheck, deploy
from podium.studio.limits import check_pairs
from podium.studio.pages.view_context import View, ViewContext, register_view

HEAD = ("expert", "name in the engine", "weight", "requests")


@register_view(
    "deploy", "Deploy", 120, applies=lambda data: bool(data.preferences.lists.rows), goal="Improve"
)
def build_deploy_view(c: ViewContext) -> View:
    """The configuration for one engine, its nearest form where it has no exact one, checked on the lists."""
    spec, _ = c.method()
    to = c.get_value("to", "qdrant")
    depth = c.get_whole_number("depth", 100, 1, 10_000)
    engines = {name: cls.title for name, cls in registry.engines.all().items()}
    registry.engines.get(to)

    def compute() -> tuple[Deployment, OrderCheck]:
        method, preferences = c.work.method(spec), c.data.preferences
        if not preferences.lists.rows:
            raise ParameterError("engines fuse lists, and these data have none; give runs or ratings")
        check_pairs(c.work.settings.limits, preferences, method)
        weights = method.weights if method.weights is not None else getattr(method, "weights_", None)
        named = None if isinstance(weights, dict) else preferences.experts.tolist()
        deployment = deploy(method, to, experts=named, depth=depth, nearest=True)
        return deployment, deployment.check(preferences)

    key = (c.data.fingerprint, "deploy", spec, to, depth)
    deployment, check = c.wait(c.work.result(key, compute))
    form = deployment.form
    sources = zip(form.sources, form.weights, strict=True)
    rows = [(str(s.expert), s.name, w if form.is_weighted else 1.0, s.copies) for s, w in sources]
    document = {
        "engine": to,
        "method": spec,
        "form": form.describe(),
        "exact": deployment.exact,
        "reason": form.reason,
        "notes": list(deployment.notes),
        "check": {"queries": check.queries, "same": check.same, "same_top": check.same_top},
        "config": deployment.config,
    }
    more = {
        "about": document,
        "spec": spec,
        "to": to,
        "depth": depth,
        "engines": engines,
        "checked": check.describe(),
        "methods": c.methods(),
        "models": c.models(),
    }
    return View(f"Deploy to {engines[to]}", document, HEAD, rows, (), "deploy.html", more)
