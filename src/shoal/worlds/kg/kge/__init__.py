"""Knowledge-graph embeddings: a small engine of our own, an adapter for PyKEEN, and facts they predict."""
