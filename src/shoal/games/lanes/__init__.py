"""Lanes with seats as lanes without: every seat a row, or one seat against drawn opponents."""
