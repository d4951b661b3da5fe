"""The heavy kernels in PyTorch, for a CUDA device; imported only when one is asked for (extra `torch`)."""
