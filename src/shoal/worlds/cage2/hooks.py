"""What cage2 adds to the loop: compliance written down, rules to end early, and a cost that begins high.

These objects fit the hooks of the trainer by their methods alone; the world does not import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.errors import ConfigError

TRUE_USER_COST = 0.1
"""What a privileged foothold on one of User1 to User4 costs per step."""
_USERS = 0b1_1110_0000_0000
_QUANTITIES = ("env_return", "alignment", "compliance", "fixes")


@dataclass(frozen=True)
class StopRules:
    """When a workflow has been learned, or will not be. None leaves a rule out."""

    compliance: float | None = None
    """Stop when the latest episodes of all lanes comply at least so often, on average for every workflow trained."""
    min_episodes: int = 10
    """Episodes, summed over the lanes, before compliance is believed."""
    min_fixes: int = 10
    """Fixes in the latest episodes of all lanes before compliance is believed."""
    patience: int | None = None
    """Stop after so many updates in which compliance has not gained 0.01."""
    max_episodes: int | None = None
    """Stop after so many episodes, summed over the lanes."""

    def __post_init__(self) -> None:
        if self.compliance is not None and not 0 < self.compliance <= 1:
            raise ConfigError(f"stop_compliance={self.compliance} is no rate. It must lie above 0 and not above 1.")
        for name in ("min_episodes", "min_fixes", "patience", "max_episodes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name}={value} makes no sense. It must be at least 1.")


class WorkflowMonitor:
    """Follows every lane's episodes: a recorder, a callback that logs them, and a rule that ends the run."""

    def __init__(self, rules: StopRules | None = None) -> None:
        self.rules = rules or StopRules()
        self.episodes = 0
        self.latest: dict[str, np.ndarray] = {}  # [B] of each lane's latest episode, NaN before its first
        self._best, self._stale = -np.inf, 0
        self._sums, self._ended = dict.fromkeys(_QUANTITIES, 0.0), 0  # of the episodes of this iteration

    def after_step(self, t: int, rollout: Any, info: dict[str, Any]) -> None:
        """Recorder: take the final infos of episodes that ended in this step."""
        if not self.latest:
            self.latest = {name: np.full(rollout.num_envs, np.nan) for name in _QUANTITIES}
        if "final_info" not in info:
            return
        ended, final = info["_final_info"], info["final_info"]
        for name in _QUANTITIES:
            self.latest[name][ended] = final[name][ended]
            self._sums[name] += float(final[name][ended].sum())
        self._ended += int(ended.sum())
        self.episodes += int(ended.sum())

    def after_iteration(self, loop: Any) -> dict[str, float]:
        """Callback: means over the episodes that ended in this iteration, each quantity apart."""
        if self._ended == 0:
            return {}
        means = {f"rollout/{name}": total / self._ended for name, total in self._sums.items()}
        self._sums, self._ended = dict.fromkeys(_QUANTITIES, 0.0), 0
        if means["rollout/compliance"] > self._best + 0.01:
            self._best, self._stale = means["rollout/compliance"], 0
        else:
            self._stale += 1
        return means

    def compliance_by_workflow(self, workflow: np.ndarray) -> dict[tuple[int, ...], float]:
        """Mean compliance of the latest episodes, by workflow; `workflow` [B, 5] says which one a lane follows."""
        orders, group = np.unique(workflow, axis=0, return_inverse=True)
        rates = self.latest.get("compliance", np.full(len(workflow), np.nan))
        return {tuple(map(int, order)): float(rates[group == k].mean()) for k, order in enumerate(orders)}

    def reason_to_stop(self, loop: Any) -> str | None:
        """Stop rule: the first of threshold, plateau and cap that holds."""
        rules = self.rules
        if rules.compliance is not None and self._believable():
            lowest = min(self.compliance_by_workflow(loop.batch.lane_state["workflow"]).values())
            if lowest >= rules.compliance:
                return f"compliance {lowest:.3f} reached {rules.compliance} after {self.episodes:,} episodes"
        if rules.patience is not None and self._stale >= rules.patience:
            return f"compliance has not risen above {self._best:.3f} for {self._stale} updates"
        if rules.max_episodes is not None and self.episodes >= rules.max_episodes:
            return f"all {rules.max_episodes:,} episodes done"
        return None

    def _believable(self) -> bool:
        """Every lane has ended an episode, and there were enough episodes and fixes."""
        fixes = self.latest["fixes"].sum() if self.latest else np.nan  # NaN while a lane is in its first episode
        return self.episodes >= self.rules.min_episodes and bool(fixes >= self.rules.min_fixes)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything it remembers between two iterations."""
        counters = np.array([self.episodes, self._best, self._stale], np.float64)
        return {"counters": counters, **{name: values.copy() for name, values in self.latest.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` left off."""
        episodes, self._best, stale = np.asarray(state["counters"]).tolist()
        self.episodes, self._stale = int(episodes), int(stale)
        self.latest = {name: np.array(state[name]) for name in _QUANTITIES if name in state}


class UserCost:
    """A recorder that charges more for user hosts at first, falling to their true cost at half of the run.

    To restore a user host pays only if Blue also removes every shell that follows. An untrained defender does not, so
    it learns to let user hosts go and never finds out. Evaluations are at the true cost throughout.
    """

    def __init__(self, start: float) -> None:
        if not start >= TRUE_USER_COST:
            raise ConfigError(f"user_cost={start} is less than what a user host costs in truth, {TRUE_USER_COST}.")
        self.start = start
        self._loop: Any = None

    def begin(self, loop: Any) -> None:
        """Get to know the run, whose progress decides."""
        self._loop = loop

    def surcharge(self) -> float:
        """What is charged now beyond the true cost, per host and step."""
        progress = self._loop.step / self._loop.config.total_steps
        return max(0.0, 1 - 2 * progress) * (self.start - TRUE_USER_COST)

    def after_step(self, t: int, rollout: Any, info: dict[str, Any]) -> None:
        """Recorder: charge every lane for the user hosts that red has privileges on."""
        owned = info["owned"]
        if "final_info" in info:
            owned = np.where(info["_final_info"], info["final_info"]["owned"], owned)
        rollout.reward[t] -= self.surcharge() * np.bitwise_count(owned & _USERS)
