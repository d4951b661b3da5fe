"""What a preference is: ids, lists and comparisons, labels, features, and the consensus."""
