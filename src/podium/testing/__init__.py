"""For users and plug-in authors: the checks that every aggregator must pass, and Hypothesis strategies."""
