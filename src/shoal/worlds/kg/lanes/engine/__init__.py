"""Engines: from a state to its successors. `compiled` for the CPU, `tensor` for any device; both give the same."""
