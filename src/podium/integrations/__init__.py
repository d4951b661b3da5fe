"""Adapters for frameworks, one module each; a module needs its framework, which an extra of the same name installs."""
