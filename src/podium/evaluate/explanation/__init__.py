"""Why an item is where it is, why one is above another, and what would have to change for them to swap."""

from podium.evaluate.explanation.changes import Change
from podium.evaluate.explanation.explanation import Explanation, Voice, explain

__all__ = ["Change", "Explanation", "Voice", "explain"]
