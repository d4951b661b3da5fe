"""Methods that learn from labels how much weight each expert deserves."""
