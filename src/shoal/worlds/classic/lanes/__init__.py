"""The classics as kernels."""
