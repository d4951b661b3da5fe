"""From input columns to validated tables."""
