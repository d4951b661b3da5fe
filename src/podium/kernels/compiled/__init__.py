"""Compiled kernels: plain loops under numba, loaded only for large inputs."""
