"""Training: one loop, its configuration, and the small objects that worlds hand to it."""
