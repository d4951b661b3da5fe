"""Figures: ranks by expert and item, and learned weights by expert."""

from podium.analysis.figures.heatmap import rank_heatmap
from podium.analysis.figures.weights_chart import weight_matrix, weight_table

__all__ = ["rank_heatmap", "weight_matrix", "weight_table"]
