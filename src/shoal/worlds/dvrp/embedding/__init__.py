"""Learning who is flexible how: records of answers, an embedding model and an exact filter that turn them into masks."""
