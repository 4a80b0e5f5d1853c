"""`shoal tune`: settings of an agent or a world chosen by Optuna over runs of Shoal."""
