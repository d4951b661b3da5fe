"""The data model: ids, lists and comparisons, labels, features, and the consensus."""
