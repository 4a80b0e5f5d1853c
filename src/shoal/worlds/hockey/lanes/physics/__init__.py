"""Bodies that collide: a contact solver with continuous collision, as scalar code for kernels."""
