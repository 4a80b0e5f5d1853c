"""Training of the neural oracle: imitation of the compiled one, then REINFORCE."""
