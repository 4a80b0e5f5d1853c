"""Search over workflows: which order of repairs, when trained to be followed, keeps the network safest."""
