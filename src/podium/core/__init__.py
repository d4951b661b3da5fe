"""Shared by all layers: errors, parameters, the registry, tables as text."""
