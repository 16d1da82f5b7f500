"""Compiled kernels: their declaration, their cache, and everything that touches numba or LLVM."""
