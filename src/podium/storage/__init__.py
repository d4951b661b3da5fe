"""Bytes on disk: opening and writing files, temporary files, arrays in files."""
