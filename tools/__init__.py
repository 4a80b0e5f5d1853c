"""For those who work on Shoal; nothing in here is installed."""
