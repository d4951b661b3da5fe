"""Methods that use item features and need no labels."""
