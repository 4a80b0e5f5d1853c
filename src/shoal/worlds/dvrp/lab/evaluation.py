"""How much a negotiator saves: the same episodes with its offers and without any."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.seeding import Seed, Stream
from shoal.training.evaluate import EpisodeQuota
from shoal.training.lab import Policy, Verdict
from shoal.worlds.dvrp.lanes.instances import clairvoyant_gain
from shoal.worlds.dvrp.lanes.offers import NO_OFFER

if TYPE_CHECKING:
    from shoal.training.acting import Player
    from shoal.vector.batch import Batch
    from shoal.worlds.dvrp.world import DvrpOptions

EPISODES = 100


class Played(NamedTuple):
    """E episodes with offers, each beside the same one without."""

    cost: np.ndarray  # [E]
    noop_cost: np.ndarray  # [E]
    failed: np.ndarray  # [E] bool: the fleet did not suffice
    offers: np.ndarray  # [E] share of the customers who were made an offer
    acceptance: float  # share of the offers that were accepted


def evaluate(player: Player[DvrpOptions], episodes: int | None, seed: int) -> Verdict:
    """Mean cost with and without offers, and the improvement with its 95 % interval."""
    episodes, options = episodes or EPISODES, replace(player.options, compare_noop=True)
    batch = player.make_lanes(min(episodes, player.batch.num_envs), options)
    played = play(batch, player.act_in(batch), episodes, Seed(seed + 1, Stream.EVALUATION))
    cost, noop = played.cost.mean(), played.noop_cost.mean()
    gain = 100 * (1 - cost / noop)
    low, high = _interval(played.cost, played.noop_cost)
    unit = "km" if options.cost_matrix == "distance" else "min"
    text = (
        f"{player.title}: {cost:.2f} {unit} against {noop:.2f} {unit} without offers over {len(played.cost)} "
        f"episodes: {noop - cost:.2f} {unit} or {gain:.2f} % less [{low:.2f}, {high:.2f}]; offers to "
        f"{100 * played.offers.mean():.0f} % of the customers, {100 * played.acceptance:.0f} % accepted, "
        f"failure rate {100 * played.failed.mean():.1f} %"
    )
    bound = clairvoyant_gain(options.customers)
    if bound is not None:
        text += f" (knowing everything beforehand would save {bound:.1f} % with exact routes)"
    values = {
        "episodes": len(played.cost),
        "cost": float(cost),
        "noop_cost": float(noop),
        "improvement_percent": float(gain),
        "improvement_low": low,
        "improvement_high": high,
        "failure_rate": float(played.failed.mean()),
        "acceptance": played.acceptance,
        "clairvoyant_percent": bound,
        "costs": played.cost.tolist(),
        "noop_costs": played.noop_cost.tolist(),
    }
    return Verdict(text, values)


def play(batch: Batch, policy: Policy, episodes: int, seed: int | Seed) -> Played:
    """Play `episodes`, as many in every lane."""
    quota = EpisodeQuota(batch.num_envs, episodes)
    ended: list[list[np.ndarray]] = []  # per step, the first four columns of `Played`
    accepted = asked = 0
    obs, info = batch.reset(seed=seed)
    offers = np.zeros(batch.num_envs)
    while not quota.done:
        action = np.asarray(policy(obs, info))
        obs, _, done, _, info = batch.step(action)
        offered, final = action != NO_OFFER, info.get("final_info")
        answer = info["accepted"] if final is None else np.where(done, final["accepted"], info["accepted"])
        accepted, asked, offers = accepted + answer[offered].sum(), asked + offered.sum(), offers + offered
        if final is not None:
            counted = quota.counts(done)
            share = offers / final["num_requests"].clip(1)
            values = (final["current_cost"], final["noop_cost"], final["solver_failed"], share)
            ended.append([column[counted] for column in values])
            offers = np.where(done, 0, offers)
            policy.forget(done)
    cost, noop_cost, failed, shares = (np.concatenate(parts) for parts in zip(*ended, strict=True))
    return Played(cost, noop_cost, failed, shares, float(accepted / max(asked, 1)))


def _interval(cost: np.ndarray, noop: np.ndarray, resamples: int = 2000) -> tuple[float, float]:
    """95 % bootstrap interval of the improvement in per cent; episodes are drawn with both their costs."""
    rows = np.random.default_rng(0).integers(0, len(cost), (resamples, len(cost)))
    gains = 100 * (1 - cost[rows].mean(1) / noop[rows].mean(1))
    low, high = np.quantile(gains, [0.025, 0.975])
    return float(low), float(high)
