"""Batches that others have made: any `gymnasium.vector.VectorEnv`, and environments of gymnax, as Shoal's own."""
