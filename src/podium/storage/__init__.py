"""Storage: reading and writing files, temporary files, arrays in files."""
