"""Knowledge-graph embeddings that have been trained, by us or by PyKEEN: scores of triples."""
