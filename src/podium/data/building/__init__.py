"""From columns as given to validated tables."""
