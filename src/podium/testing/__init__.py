"""For users and plug-in authors: the checks every aggregator must pass, and Hypothesis strategies."""
