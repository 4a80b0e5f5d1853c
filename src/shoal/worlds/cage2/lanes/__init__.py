"""CAGE Challenge 2 as a kernel: rules, what Blue sees, and what counts as following a workflow."""
