"""Aggregators that learn from labels how much to trust each expert."""
