"""How much a negotiator saves: the same episodes with its offers and without any."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.worlds.dvrp.config import make
from shoal.worlds.dvrp.instances import clairvoyant_gain
from shoal.worlds.dvrp.offers import NO_OFFER

EPISODES = 100
UNSEEN = (1 << 64) + 1  # seeds of training fit into 64 bits


def evaluate(player: Any, episodes: int | None, seed: int) -> tuple[str, dict[str, Any]]:
    """Mean cost with and without offers, and the improvement with its 95 % interval."""
    lanes = min(episodes or EPISODES, player.batch.num_envs)
    batch = make(lanes, **{**player.env, "compare_noop": True})
    found = play(batch, player.act_in(batch), episodes or EPISODES, UNSEEN + seed)
    cost, noop = found["cost"], found["noop"]
    gain = 100 * (1 - cost.mean() / noop.mean())
    low, high = _interval(cost, noop)
    unit = "km" if batch.scenario.fleet.cost_matrix == "distance" else "min"
    text = (
        f"{player.title}: {cost.mean():.2f} {unit} against {noop.mean():.2f} {unit} without offers over {len(cost)} "
        f"episodes: {noop.mean() - cost.mean():.2f} {unit} or {gain:.2f} % less [{low:.2f}, {high:.2f}]; offers to "
        f"{100 * found['offers'].mean():.0f} % of the customers, {100 * found['acceptance']:.0f} % accepted, "
        f"failure rate {100 * found['failed'].mean():.1f} %"
    )
    bound = clairvoyant_gain(batch.settings.customers)
    if bound is not None:
        text += f" (knowing everything beforehand would save {bound:.1f} % with exact routes)"
    values = {
        "episodes": len(cost),
        "cost": float(cost.mean()),
        "noop_cost": float(noop.mean()),
        "improvement_percent": float(gain),
        "improvement_low": low,
        "improvement_high": high,
        "failure_rate": float(found["failed"].mean()),
        "acceptance": float(found["acceptance"]),
        "clairvoyant_percent": bound,
        "costs": cost.tolist(),
        "noop_costs": noop.tolist(),
    }
    return text, values


def play(batch: Any, actor: Any, episodes: int, seed: int) -> dict[str, Any]:
    """Play whole rounds of episodes, all lanes at once, until there are enough."""
    rounds = -(-episodes // batch.num_envs)
    ended: dict[str, list[np.ndarray]] = {"cost": [], "noop": [], "failed": [], "offers": []}
    accepted = asked = 0
    obs, info = batch.reset(seed=seed)
    offers = np.zeros(batch.num_envs)
    while sum(map(len, ended["cost"])) < rounds * batch.num_envs:
        action = np.asarray(actor(obs, info))
        obs, _, terminated, _, info = batch.step(action)
        done, offered = terminated, action != NO_OFFER
        answer = np.where(done, info["final_info"]["accepted"], info["accepted"]) if done.any() else info["accepted"]
        accepted, asked, offers = accepted + answer[offered].sum(), asked + offered.sum(), offers + offered
        if done.any():
            final = info["final_info"]
            for name, values in (
                ("cost", final["current_cost"]),
                ("noop", final["noop_cost"]),
                ("failed", final["solver_failed"]),
                ("offers", offers / final["num_requests"].clip(1)),
            ):
                ended[name].append(values[done])
            offers = np.where(done, 0, offers)
            actor.forget(done)
    found: dict[str, Any] = {name: np.concatenate(parts)[:episodes] for name, parts in ended.items()}
    return {**found, "acceptance": accepted / max(asked, 1)}


def _interval(cost: np.ndarray, noop: np.ndarray, resamples: int = 2000) -> tuple[float, float]:
    """95 % bootstrap interval of the improvement in per cent; episodes are drawn with both their costs."""
    rows = np.random.default_rng(0).integers(0, len(cost), (resamples, len(cost)))
    gains = 100 * (1 - cost[rows].mean(1) / noop[rows].mean(1))
    low, high = np.quantile(gains, [0.025, 0.975])
    return float(low), float(high)
