"""Why an item is where it is, why one is above another, and what would have to change for them to swap."""

from podium.analysis.explain.counterfactuals import Change
from podium.analysis.explain.result import ExpertContribution, Explanation, explain

__all__ = ["Change", "ExpertContribution", "Explanation", "explain"]
