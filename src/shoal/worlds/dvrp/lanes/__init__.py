"""City, travellers, offers, oracles and the lanes that negotiate: everything that knows nothing of training."""
