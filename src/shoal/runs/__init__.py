"""A run from beginning to end: opening lanes and agents, `shoal.train`, how many lanes are fastest."""
