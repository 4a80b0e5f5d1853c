"""Worlds that come with Shoal, one folder each. A world knows the contract, never the trainer."""
