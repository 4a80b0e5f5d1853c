"""Spread: three particles share out three landmarks without bumping into each other."""
