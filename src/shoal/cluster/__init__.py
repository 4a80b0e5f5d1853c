"""Training on a Ray cluster: runners that collect, one learner. `start` finds or starts Ray; `fleet` is what the
training loop sees instead of a batch; `runner` is what works on the other machines."""
