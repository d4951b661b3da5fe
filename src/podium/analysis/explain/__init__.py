"""Why an item has its place, why it is above another, and which changes would swap the two."""

from podium.analysis.explain.counterfactuals import Change
from podium.analysis.explain.result import ExpertContribution, Explanation, explain

__all__ = ["Change", "ExpertContribution", "Explanation", "explain"]
