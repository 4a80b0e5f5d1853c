"""Replays recordings of the original systems against the worlds: `python -m tests.parity WORLD DIR`."""
