"""The heavy kernels in PyTorch, for a CUDA device; imported only on request (extra `torch`)."""
