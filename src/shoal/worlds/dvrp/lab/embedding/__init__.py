"""Learning who is flexible how: records of answers, a model and an exact filter that turn them into masks."""
