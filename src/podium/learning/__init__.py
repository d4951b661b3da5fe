"""Learning from labels: examples, networks, and shards of training data."""
