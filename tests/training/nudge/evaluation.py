"""`--drift` measures where lanes end instead of what they earn."""

import numpy as np


def evaluate(player, episodes, seed, *, drift=False):
    if not drift:
        return None
    actor = player.act_in(player.batch)
    obs, info = player.batch.reset(seed=seed)
    for _ in range(5):
        obs, *_, info = player.batch.step(actor(obs, info))
    mean = float(np.mean(obs[:, 0]))
    return f"{player.title}: mean position {mean:.2f} after 5 steps", {"drift": mean}
