"""The navigation of a project: its views by goal, and the view with which it opens."""

from __future__ import annotations

from dataclasses import dataclass

from podium.studio.loading import ProjectData
from podium.studio.pages.view_context import GOALS, views

FIRST = "overview"  # the first page of data for which no other view declares itself


@dataclass(frozen=True)
class GoalLinks:
    """One goal and the views that serve it: names and titles."""

    goal: str
    views: dict[str, str]
    is_current: bool


def list_goals(data: ProjectData | None, current: str) -> list[GoalLinks]:
    """The goals with views that apply to the data; without readable data, the views that need none."""
    listed = {
        name: view
        for name, view in views.all().items()
        if view.title and (view.applies(data) if data is not None else not view.needs_data)
    }
    order = sorted(listed, key=lambda name: (listed[name].order, name))
    by_goal = {goal: {n: listed[n].title for n in order if listed[n].goal == goal} for goal in GOALS}
    return [GoalLinks(goal, named, current in named) for goal, named in by_goal.items() if named]


def choose_first_view(data: ProjectData) -> str:
    """The view with which data open: votes on the leaderboard, crowds on the annotators, runs on the answer."""
    for kind in ("leaderboard", "annotators"):
        if kind in data.kinds:
            for name, view in views.all().items():
                if view.first_for == kind:
                    return name
    return FIRST
