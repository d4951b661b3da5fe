"""Recipes: the files of annotation, evaluation and retrieval tools, read as these tools write them."""
