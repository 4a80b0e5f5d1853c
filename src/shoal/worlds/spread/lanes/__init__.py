"""Lanes of spread."""
