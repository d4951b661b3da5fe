"""Storage: reading and writing files, digests, arrays in files, values kept in a folder, shards."""
