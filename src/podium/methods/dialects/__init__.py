"""Fusion as search engines and frameworks compute it: one file per engine, with its methods and its configuration."""
