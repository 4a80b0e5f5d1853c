"""Environments that nobody here wrote, trained by Shoal and by Stable-Baselines3 at equal settings."""
