"""Learning from labels: examples, the training loop, scorers, and shards of training data."""
