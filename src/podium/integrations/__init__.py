"""Adapters for frameworks, one module each, which needs the framework; an extra installs it."""
