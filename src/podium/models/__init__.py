"""Saving and loading aggregators, fitted or not. No pickle: a model file holds numbers and plain values.

A file is one safetensors container. Its metadata hold a JSON document (name, parameters, plain learned
values) and a checksum over that document and all tensors; classes are looked up by name in the registry only.
"""

from podium.models.model_files import load, save

__all__ = ["load", "save"]
