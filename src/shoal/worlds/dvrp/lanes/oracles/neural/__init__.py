"""The neural routing oracle: an attention model that builds all routes of all lanes in one batch of decoder steps."""
