"""What cage2 adds to the loop: compliance written down, rules to end early, and a cost that begins high."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import ConfigError
from shoal.training.hooks import Hooks, Reads
from shoal.worlds.cage2.lab.options import TRUE_USER_COST, Cage2Training, StopRules
from shoal.worlds.cage2.lanes.batch import deal_workflows
from shoal.worlds.cage2.lanes.workflow import Workflow

if TYPE_CHECKING:
    from shoal.agents.rollout import Rollout
    from shoal.training.config import TrainConfig
    from shoal.training.loop import Loop
    from shoal.worlds.cage2.world import Cage2Options

_USERS = 0b1_1110_0000_0000
_QUANTITIES = ("env_return", "alignment", "compliance", "fixes")


def make_hooks(config: TrainConfig[Cage2Options, Cage2Training]) -> Hooks:
    """What the loop needs for the lanes' workflows and for a cost of user hosts that begins high."""
    extra, workflow = config.extra, config.env.workflow
    if workflow is None and replace(extra, user_cost=TRUE_USER_COST) != Cage2Training():
        raise ConfigError("Rules to stop early watch how a workflow is followed. Give --workflow too.")
    monitors = () if workflow is None else (WorkflowMonitor(deal_workflows(workflow, config.num_envs), extra),)
    costs = () if extra.user_cost == TRUE_USER_COST else (UserCost(extra.user_cost),)
    return Hooks(recorders=(*monitors, *costs), callbacks=monitors, stop_rules=monitors)


class WorkflowMonitor:
    """Follows every lane's episodes: a recorder, a callback that logs them, and a rule that ends the run."""

    reads = Reads(final=_QUANTITIES)

    def __init__(self, workflow: np.ndarray, rules: StopRules) -> None:
        """`workflow` [B, 5] is what each lane follows."""
        self.rules = rules
        self._workflow = workflow
        self.lane_episodes = np.zeros(len(workflow), np.int64)  # [B] that have ended
        self.latest = {name: np.full(len(workflow), np.nan) for name in _QUANTITIES}  # [B], NaN before a lane's first
        self._best, self._stale = -np.inf, 0
        self._sums, self._ended = dict.fromkeys(_QUANTITIES, 0.0), 0  # of the episodes of this iteration

    @property
    def episodes(self) -> int:
        """Episodes that have ended, summed over the lanes."""
        return int(self.lane_episodes.sum())

    def after_step(self, t: int, rollout: Rollout, info: dict[str, Any]) -> None:
        """Recorder: take the final infos of episodes that ended in this step."""
        if "final_info" not in info:
            return
        ended, final = info["_final_info"], info["final_info"]
        for name in _QUANTITIES:
            self.latest[name][ended] = final[name][ended]
            self._sums[name] += float(final[name][ended].sum())
        self._ended += int(ended.sum())
        self.lane_episodes += ended

    def after_iteration(self, loop: Loop) -> dict[str, float]:
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

    def compliance_by_workflow(self) -> dict[Workflow, float]:
        """Mean compliance of the latest episodes, by workflow."""
        orders, group = np.unique(self._workflow, axis=0, return_inverse=True)
        rates = self.latest["compliance"]
        return {tuple(map(int, order)): float(rates[group == k].mean()) for k, order in enumerate(orders)}

    def reason_to_stop(self, loop: Loop) -> str | None:
        """Stop rule: the first of threshold, plateau and cap that holds."""
        rules = self.rules
        if rules.stop_compliance is not None and self._believable():
            lowest = min(self.compliance_by_workflow().values())
            if lowest >= rules.stop_compliance:
                return f"compliance {lowest:.3f} reached {rules.stop_compliance} after {self.episodes:,} episodes"
        if rules.patience is not None and self._stale >= rules.patience:
            return f"compliance has not risen above {self._best:.3f} for {self._stale} updates"
        if rules.max_episodes is not None and self.episodes >= rules.max_episodes:
            return f"all {rules.max_episodes:,} episodes done"
        return None

    def _believable(self) -> bool:
        """Every lane has ended enough episodes, and there were enough fixes in the latest."""
        fixes = self.latest["fixes"].sum()
        return bool(self.lane_episodes.min() >= self.rules.min_episodes and fixes >= self.rules.min_fixes)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything it remembers between two iterations."""
        counters = np.array([self.episodes, self._best, self._stale], np.float64)
        latest = {name: values.copy() for name, values in self.latest.items()}
        return {"counters": counters, "lane_episodes": self.lane_episodes.copy(), **latest}

    def load_state_dict(self, state: Mapping[str, npt.ArrayLike]) -> None:
        """Go on where `state_dict` left off."""
        episodes, self._best, stale = np.asarray(state["counters"]).tolist()
        self._stale = int(stale)
        even = np.full(len(self._workflow), episodes // len(self._workflow))  # runs of earlier versions have the sum
        self.lane_episodes = np.asarray(state.get("lane_episodes", even)).astype(np.int64)
        self.latest |= {name: np.asarray(state[name]).copy() for name in _QUANTITIES if name in state}


class UserCost:
    """A recorder that charges more for user hosts at first, falling to their true cost at half of the run.

    To restore a user host pays only if Blue also removes every shell that follows. An untrained defender does not, so
    it learns to let user hosts go and never finds out. Evaluations are at the true cost throughout.
    """

    reads = Reads(("owned",), ("owned",))

    def __init__(self, start: float) -> None:
        self.start = start

    def begin(self, loop: Loop) -> None:
        """Get to know the run, whose progress decides."""
        self._loop = loop

    def surcharge(self) -> float:
        """What is charged now beyond the true cost, per host and step."""
        progress = self._loop.step / self._loop.config.total_steps
        return max(0.0, 1 - 2 * progress) * (self.start - TRUE_USER_COST)

    def after_step(self, t: int, rollout: Rollout, info: dict[str, Any]) -> None:
        """Recorder: charge every lane for the user hosts that red has privileges on."""
        owned = info["owned"]
        if "final_info" in info:
            owned = np.where(info["_final_info"], info["final_info"]["owned"], owned)
        rollout.reward[t] -= self.surcharge() * np.bitwise_count(owned & _USERS)
