"""Damaged files for everything of Shoal that reads files; `python -m tests.fuzz --cases 5000` tries them at length."""
