"""Lanes that prove queries: data, engines, and the batch itself."""
