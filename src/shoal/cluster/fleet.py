"""`Fleet`: the lanes of a run spread over runners, as the training loop sees them.

To the loop it is a batch whose lanes step themselves: `collect` takes the place of `shoal.training.collect.collect` and
fills the same rollout with the same numbers. A runner that dies is replaced; its lanes begin new episodes, and what it
was collecting is collected again, so every rollout is whole and nothing is counted twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch

from shoal.agents.agent import Agent
from shoal.agents.ppo import PPO
from shoal.agents.rollout import Ended, Rollout
from shoal.agents.share import Share
from shoal.cluster.infos import joined
from shoal.cluster.runner import Fragment, Orders, Runner
from shoal.cluster.start import use_ray
from shoal.errors import ConfigError, LaneFault, RunError, ShoalError, StateError
from shoal.seeding import Seed, Seeds, Stream
from shoal.training.collect import check_finite
from shoal.training.config import TrainConfig
from shoal.training.hooks import Hooks
from shoal.training.loop import Clock
from shoal.training.opening import make_agent, make_batch
from shoal.trees import assign_tree, concatenate_trees, copy_tree, named_leaves
from shoal.vector.batch import Batch, State, Step
from shoal.vector.spaces import empty_batch
from shoal.world import World

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle
    from torch import nn

    from shoal.training.loop import Loop

PATIENCE_S = 300.0
"""Seconds after which a runner that does not answer, or a replacement that finds no place, ends the run."""
MAX_LOSSES = 20
"""Losses without a whole rollout between them after which the cluster, or the environment, is taken for broken."""

COLUMNS = ("action", "log_prob", "value", "reward", "terminated", "truncated")
"""Arrays [T, B, ...] of a rollout that a fragment has its rows of."""


@dataclass
class Request:
    """A rollout that the runners were asked for."""

    updates: int  # that the agent had made when its weights were stored
    orders: ObjectRef  # where in the cluster they are, with all that goes with them
    pending: list[ObjectRef]  # the fragments to come, one per runner


class Fleet(Batch):
    """K runners with B / K lanes each. Settings changed in `pattern`, a lane here, become theirs with the next weights.

    Args:
        ray: the module, connected to the cluster on which the runners shall live.
        world, config, network: what the run trains, as `shoal.train` has it.
        patience_s: see `PATIENCE_S`.
    """

    def __init__(
        self,
        ray: ModuleType,
        world: World,
        config: TrainConfig,
        network: nn.Module | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._ray, self._source, self.patience_s = ray, (world, config, network), patience_s
        self.config, self.staleness = config, config.staleness
        each = config.num_envs // config.runners
        self.shares = [Share(k * each, each, config.num_envs) for k in range(config.runners)]
        self.restarts = [0] * config.runners
        self._seed = Seed(config.seed)
        self.updates = self.fragments_lost = 0
        self.cpu_s: list[float] = []  # of the runners, for the latest rollout
        self._queue: deque[Request] = deque()
        self._pattern = lane = make_batch(world, config, 1)
        self.state_is_data = lane.state_is_data
        super().__init__(
            config.num_envs,
            lane.single_observation_space,
            lane.single_action_space,
            autoreset_mode=lane.autoreset_mode,
            has_action_mask=lane.has_action_mask,
        )
        self._actor = ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(Runner)
        self.runners = [self._start(share) for share in self.shares]
        try:
            self._all([runner.ready.remote() for runner in self.runners])
        except ShoalError:
            self.close()
            raise

    # ------------------------------------------------------------------ what the loop calls

    def collect(self, batch: Batch, agent: Agent, rollout: Rollout, hooks: Hooks, clock: Clock) -> None:
        """Fill `rollout` with T steps of every lane, by weights at most `staleness` updates old."""
        with clock("environment"):
            while len(self._queue) <= self.staleness:
                self._request(agent, hooks)
            request = self._queue.popleft()
            fragments = self._gather(request, agent)
        with clock("inference"):
            self._fill(rollout, fragments)
            self.cpu_s = [fragment.cpu_s for fragment in fragments]
            rollout.importance = None
            if not self.staleness:
                agent.generator.set_state(torch.tensor(fragments[0].generator))
            elif request.updates < self.updates and isinstance(agent, PPO):
                agent.refresh(rollout)
        self._record(rollout, fragments, hooks)
        check_finite(rollout)
        self.updates += 1  # which the agent makes of it now

    def after_iteration(self, loop: Loop) -> dict[str, float]:
        """What to log about the runners; as a callback of the loop."""
        return {
            "runners/restarts": float(sum(self.restarts)),
            "runners/fragments_lost": float(self.fragments_lost),
            "runners/cpu_s": sum(self.cpu_s),
        }

    @property
    def pattern(self) -> Batch:
        return self._pattern

    def close_extras(self, **kwargs: object) -> None:
        for runner in self.runners:
            self._ray.kill(runner)
        self._pattern.close()

    # ------------------------------------------------------------------ the contract

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, Any]) -> dict[str, Any]:
        if mask is not None or options or isinstance(seed, list) or (seed is None and not self._was_reset):
            raise StateError("Lanes on runners are reset all at once, the first time by one seed.")
        if seed is not None:
            self._seed = seed if isinstance(seed, Seed) else Seed(seed)
            seed = self._seed
        self._queue.clear()  # what was collected ahead belongs to episodes that end here
        settings = self._pattern.get_settings()
        rows = self._all([runner.reset.remote(seed, settings) for runner in self.runners])
        for share, (obs, action_mask) in zip(self.shares, rows, strict=True):
            assign_tree(out.obs, share.lanes, obs)
            if action_mask is not None:
                out.action_mask[share.lanes] = action_mask  # type: ignore[index]  # there is one where lanes have one
        return {}

    def _step_lanes(self, action: object, out: Step) -> NoReturn:
        raise StateError("Lanes on runners step themselves: call collect().")

    def _get_state(self) -> State:
        if self._queue:
            raise StateError("runners that collect ahead (--staleness) have gone on since.")
        states = self._all([runner.get_state.remote() for runner in self.runners])
        named = named_leaves({f"runner_{k}": state for k, state in enumerate(states)})
        return {**{name: np.array(array) for name, array in named}, "restarts": np.array(self.restarts)}

    def _set_state(self, state: State) -> None:
        self.restarts = np.asarray(state["restarts"]).tolist()
        calls: list[ObjectRef] = []
        for k, runner in enumerate(self.runners):
            prefix = f"runner_{k}."
            own = {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
            calls.append(runner.set_state.remote(own))
        self._all(calls)

    # ------------------------------------------------------------------ requests and answers

    def _request(self, agent: Agent, hooks: Hooks) -> None:
        """Ask every runner for a fragment by the agent as it is now. Its weights are stored in the cluster once."""
        weights = {name: tensor.numpy() for name, tensor in agent.acting_state().items()}
        if self.staleness:  # rollouts overlap, so each has random numbers of its own
            seed = int(torch.randint(2**62, (), generator=agent.generator))
            weights["generator"] = torch.Generator().manual_seed(seed).get_state().numpy()
        behaviour = agent.behaviour if isinstance(agent, PPO) else None
        orders = Orders(weights, behaviour, self._pattern.get_settings(), hooks.reads())
        stored = self._ray.put(orders)
        pending: list[ObjectRef] = [runner.collect.remote(stored) for runner in self.runners]
        self._queue.append(Request(self.updates, stored, pending))

    def _gather(self, request: Request, agent: Agent) -> list[Fragment]:
        """The fragments of all runners, in their order; lost ones are collected again by a replacement."""
        fragments: list[Fragment | None] = [None] * len(self.runners)
        waiting, losses = {ref: k for k, ref in enumerate(request.pending)}, 0
        while waiting:
            ready, _ = self._ray.wait(list(waiting), num_returns=1, timeout=self.patience_s)
            hung = not ready
            for ref in ready or list(waiting):
                k = waiting.pop(ref)
                fragments[k] = None if hung else self._answer(ref, k)
                if fragments[k] is None:
                    losses += 1
                    if losses > MAX_LOSSES:
                        raise RunError(f"Runners died {losses} times within one rollout: the cluster is out of order.")
                    self._replace(k, agent)
                    for each in (request, *self._queue):  # also what it had been asked for ahead
                        each.pending[k] = self.runners[k].collect.remote(each.orders)
                    waiting[request.pending[k]] = k
        return fragments  # type: ignore[return-value]

    def _answer(self, ref: ObjectRef, k: int) -> Fragment | None:
        """What runner `k` returned; None if it is dead. An error of its own is raised with the lane of the run."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(ref)
        except errors.RayTaskError as error:
            cause = error.as_instanceof_cause()
            if isinstance(cause, LaneFault):
                raise LaneFault(f"Runner {k}, lanes from {self.shares[k].first}: {error.cause}") from error
            if isinstance(cause, ShoalError):
                raise type(cause)(str(error.cause)) from error
            raise
        except (errors.RayActorError, errors.ObjectLostError, errors.OwnerDiedError, errors.NodeDiedError):
            return None

    def _replace(self, k: int, agent: Agent) -> None:
        """Start runner `k` anew, on whichever node has room."""
        self.fragments_lost += 1
        self.restarts[k] += 1
        self._ray.kill(self.runners[k])
        self.runners[k] = self._start(self.shares[k])
        ready: ObjectRef = self.runners[k].ready.remote()
        if not self._ray.wait([ready], timeout=self.patience_s)[0]:
            free = self._ray.available_resources().get("CPU", 0)
            raise RunError(
                f"Runner {k} died and found no new place within {self.patience_s:.0f} s; the cluster has {free:.0f} "
                "free CPUs. Add a node, then resume the run."
            )
        seed = replacement_seed(self._seed, self.restarts[k])
        self.runners[k].reset.remote(seed, self._pattern.get_settings())
        agent.cut_episodes(self.shares[k].lanes)

    def _start(self, share: Share) -> ActorHandle[Runner]:
        return self._actor.remote(*self._source, share)

    def _all(self, refs: list[ObjectRef]) -> list[Any]:
        """Answers that must come: before and between rollouts a dead runner has lost nothing that could be replaced."""
        try:
            return self._ray.get(refs, timeout=self.patience_s)
        except self._ray.exceptions.GetTimeoutError:
            have = self._ray.cluster_resources().get("CPU", 0)
            raise RunError(
                f"The {len(self.shares)} runners did not start within {self.patience_s:.0f} s; the cluster has "
                f"{have:.0f} CPUs and each runner needs one. Use fewer runners, or add nodes."
            ) from None
        except self._ray.exceptions.RayActorError as error:
            raise StateError(f"A runner died: {str(error).splitlines()[0]}") from error
        except self._ray.exceptions.RayTaskError as error:
            cause = error.as_instanceof_cause()
            raise (type(cause)(str(error.cause)) if isinstance(cause, ShoalError) else error) from error

    # ------------------------------------------------------------------ one rollout out of many fragments

    def _fill(self, rollout: Rollout, fragments: list[Fragment]) -> None:
        rollout.begin()
        ended: dict[int, list[Ended]] = {}
        for share, part in zip(self.shares, fragments, strict=True):
            rows = (slice(None), share.lanes)
            assign_tree(rollout.obs, rows, part.obs)
            for name in COLUMNS:
                getattr(rollout, name)[rows] = getattr(part, name)
            if rollout.action_mask is not None:
                rollout.action_mask[rows] = part.action_mask
            for end in part.ended:
                mine = end._replace(lanes=end.lanes + share.first, obs=copy_tree(end.obs))  # Ray's arrays are read-only
                ended.setdefault(end.t, []).append(mine)
        for name in ("state", "last_state"):
            if getattr(rollout, name) is not None:
                setattr(rollout, name, torch.cat([getattr(part, name) for part in fragments]))
        rollout.ended[:] = [_joined(ended[t]) for t in sorted(ended)]

    def _record(self, rollout: Rollout, fragments: list[Fragment], hooks: Hooks) -> None:
        """Tell the recorders of every step, with the infos of all lanes, as `collect` in one process does."""
        ended = {end.t: end for end in rollout.ended}
        for t in range(rollout.num_steps) if hooks.recorders else sorted(ended):
            info = joined([part.infos[t] for part in fragments], self.shares, rollout, t, ended.get(t))
            rollout.episodes.add(info)
            for recorder in hooks.recorders:
                recorder.after_step(t, rollout, info)


def replacement_seed(lost: Seed, restarts: int) -> Seed:
    """For a runner in the place of one whose lanes began with `lost`: streams that the run has not used."""
    return Seed(lost.number, Stream.REPLACED, (restarts, *lost.extra))


def _joined(ends: list[Ended]) -> Ended:
    """Ends of one step on several runners, as one process would have kept them."""
    states = [end.state for end in ends if end.state is not None]
    lanes = np.concatenate([end.lanes for end in ends])
    return Ended(ends[0].t, lanes, concatenate_trees([end.obs for end in ends]), torch.cat(states) if states else None)


@contextmanager
def open_fleet(
    world: World, config: TrainConfig, network: nn.Module | None, make_hooks: Callable[[Batch], Hooks]
) -> Iterator[Fleet]:
    """Runners for a run, on the cluster that the configuration names or on a Ray of our own; gone after the `with`."""
    with closing(make_batch(world, config, 1)) as lane:  # nothing is started for a run that cannot be
        check_runners(config, make_agent(world, config, lane, network))
        make_hooks(lane)
        row = empty_batch(lane.single_observation_space, 1)
    fragment_bytes = config.batch_size // config.runners * (48 + sum(leaf.nbytes for _, leaf in named_leaves(row)))
    with (
        use_ray(config.ray_address, config.runners + 1, "--runners", fragment_bytes) as ray,
        closing(Fleet(ray, world, config, network)) as fleet,
    ):
        yield fleet


def check_runners(config: TrainConfig, agent: Agent) -> None:
    """`ConfigError` for what runners cannot do."""
    if config.staleness and agent.state_size and isinstance(agent, PPO):
        raise ConfigError("--staleness needs a network without memory: old memories cannot be corrected for.")
