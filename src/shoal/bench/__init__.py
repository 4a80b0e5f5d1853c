"""Benchmarks: Shoal and its peers on the same work, interleaved in one run."""
