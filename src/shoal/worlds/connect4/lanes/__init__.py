"""Lanes of Connect Four: the board as bits, the bots, the kernel."""
