"""The five games as kernels."""
