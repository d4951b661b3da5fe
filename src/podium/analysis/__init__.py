"""Analysis of experts, annotators and items from votes and rankings."""
