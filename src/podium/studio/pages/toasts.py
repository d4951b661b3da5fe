"""Short messages after an action, named by a code in the address: a link cannot put words of its own on a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TEXTS = {
    "labels-added": "The labels were added.",
    "labels-removed": "The added labels were removed.",
    "opened": "The files were opened.",
    "restored": "The project is back.",
    "renamed": "The project has a new name.",
    "read-again": "The files were read again with these settings.",
    "texts-added": "The texts were added.",
    "texts-removed": "The texts were removed.",
    "job-started": "The job has started.",
    "job-stopped": "The job is being stopped.",
    "weights-kept": "The weights were kept as a model.",
    "vote-undone": "The last vote was taken back.",
}


@dataclass(frozen=True)
class Toast:
    """A message, and the address to which a form posts to undo the action."""

    text: str
    undo: str = ""


def find_toast(parameters: Mapping[str, str]) -> Toast | None:
    """The message that an address asks for.

    >>> find_toast({"done": "renamed"})
    Toast(text='The project has a new name.', undo='')
    """
    removed = parameters.get("removed", "")
    if removed and len(removed) <= 32 and removed.isalnum() and removed.isascii():
        return Toast("The project was removed.", f"/p/{removed}/restore")
    text = TEXTS.get(parameters.get("done", ""))
    return None if text is None else Toast(text)
