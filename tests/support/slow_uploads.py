"""A parse of an upload that never ends, for the processes of a server under test."""

import time

from podium.studio.api import project_routes

ENDLESS = "endless.run"  # the name of a file whose parse never ends
_create_project = project_routes._create_project


def create_project(state, files, options, name):
    """Create a project as the server does, but never end if a file is named `ENDLESS`."""
    while any(file == ENDLESS for file, _ in files):
        time.sleep(60)
    return _create_project(state, files, options, name)
