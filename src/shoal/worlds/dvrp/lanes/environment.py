"""The environment: n requests arrive one by one, each may be made one offer, an oracle prices what is booked."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError
from shoal.seeding import Seeds, uniform_at
from shoal.trees import Tree
from shoal.vector.batch import Array, State, Step
from shoal.vector.batched import Batched
from shoal.vector.oracle import Oracle
from shoal.worlds.dvrp.lanes import offers
from shoal.worlds.dvrp.lanes.city import DAY
from shoal.worlds.dvrp.lanes.observation import Encoder
from shoal.worlds.dvrp.lanes.oracles import RoutingOracle
from shoal.worlds.dvrp.lanes.oracles.ruin import InsertionOracle
from shoal.worlds.dvrp.lanes.pool import WINDOW, Episode, draw_episode
from shoal.worlds.dvrp.lanes.scenario import Scenario, check_scenario, unservable
from shoal.worlds.dvrp.lanes.settings import Settings
from shoal.worlds.dvrp.lanes.solution import Solution

FAILURE_REWARD = -5000.0
NUM_ACTIONS = len(offers.ACTIONS)


class DvrpBatch(Batched):
    """B episodes of n requests. One oracle call per step for all lanes, whatever is compared with what.

    A lane is priced under up to three *variants* of its windows, side by side on a second axis: as negotiated, with
    the present request unshifted (`counterfactual`), and without any offer since the start (`vs_noop_path`).
    """

    def __init__(
        self,
        num_envs: int,
        scenario: Scenario,
        oracle: RoutingOracle,
        settings: Settings | None = None,
        *,
        autoreset_mode: AutoresetMode | str = "same_step",
        copy: bool = True,
    ) -> None:
        self.scenario, self.settings = scenario, settings or Settings()
        check_scenario(scenario, self.settings)
        self.encoder = Encoder(scenario.city, scenario.pool, self.settings)
        actions: gym.Space = gym.spaces.Discrete(NUM_ACTIONS)
        super().__init__(
            num_envs, self.encoder.space, actions, autoreset_mode=autoreset_mode, has_action_mask=True, copy=copy
        )
        self.metadata["renderer"] = "shoal.worlds.dvrp.rendering:CITY_MAP"
        self.router, self._quoter = oracle, InsertionOracle(scenario.city, scenario.fleet)
        self.oracle = Oracle(self._route, name=oracle.name, describe=self._describe)
        self.masks = np.ones((scenario.pool.size, NUM_ACTIONS), np.bool_)
        self.state = _empty_state(self.num_envs, self.settings.customers, self.settings.follows_noop)
        self._lane = np.arange(self.num_envs)
        self._next_seed: np.ndarray | None = None

    # ------------------------------------------------------------------ masks

    def set_masks(self, masks: np.ndarray) -> None:
        """Say which offers are worth making to each traveller, [K, 16] bool, from the next step on."""
        if np.shape(masks) != self.masks.shape:
            raise ConfigError(f"Masks of shape {np.shape(masks)} do not fit {self.masks.shape}: travellers by offers.")
        self.masks = np.array(masks, np.bool_)

    def get_settings(self) -> np.ndarray:
        return self.masks

    def set_settings(self, settings: np.ndarray) -> None:
        self.set_masks(settings)

    def action_mask(self) -> np.ndarray:
        """[B, 16]: the mask of the traveller now asking."""
        return self.masks[self.state["user"][self._lane, self._present()] - 1]

    def present_limit(self) -> np.ndarray:
        """[B, 2] minutes (early, late) that the traveller now asking would bear: what an agent has to find out."""
        return self.state["limit"][self._lane, self._present()]

    def present_trip(self) -> tuple[np.ndarray, np.ndarray]:
        """Who asks now, and for which of their trips, both [B] from 0."""
        t = self._present()
        return self.state["user"][self._lane, t] - 1, self.state["trip"][self._lane, t]

    # ------------------------------------------------------------------ episodes

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, Any]) -> dict[str, Any]:
        """Also takes `options={"episode_seed": [B] ints}` to play exactly these episodes."""
        chosen = options.get("episode_seed")
        if chosen is not None and np.shape(chosen) != (self.num_envs,):
            raise ConfigError(f"episode_seed has shape {np.shape(chosen)}. Give {self.num_envs}, one per lane.")
        self._next_seed = None if chosen is None else np.asarray(chosen).astype(np.uint64)
        try:
            return super()._reset_lanes(out, seed, mask, options)
        finally:
            self._next_seed = None

    def begin(self, lanes: Array) -> None:
        seed = self.rng.bits(lanes) if self._next_seed is None else self._next_seed[lanes]
        episode = draw_episode(self.scenario.pool, seed, self.settings.customers)
        for name, array in self.state.items():
            array[lanes] = getattr(episode, name, 0)
        self.state["asked"][lanes] = self._ask(episode, seed)
        cells, tw = self.state["cells"], self.state["tw"]
        cells[lanes, 0], tw[lanes, 0] = self.scenario.city.depot, (0, DAY)
        cells[lanes, 1::2], cells[lanes, 2::2] = episode.origin, episode.dest

    def _ask(self, episode: Episode, seed: np.ndarray) -> np.ndarray:
        """Windows as asked for, [L, n, 2, 2] minutes: pickup and dropoff, earliest and latest."""
        start = np.stack([episode.pickup_start, episode.dropoff_start], -1)[..., None]
        asked = np.clip(start + np.array([0, WINDOW]), 0, offers.MINUTES)
        if not self.settings.perturbation:
            return asked
        person, choices = episode.user - 1, self.settings.perturbation // 10 + 1
        early, late = (np.floor(choices * uniform_at(seed[:, None], word, person)).astype(int) for word in (22, 23))
        apart = offers.shift_windows(asked, 10 * np.stack([-early, late], -1), widen=False)
        return np.where(unservable(self.scenario, episode.origin, episode.dest, apart)[..., None, None], asked, apart)

    # ------------------------------------------------------------------ steps

    def transition(self, action: Array) -> tuple[Array, Array, Array]:
        state, settings, lane, t = self.state, self.settings, self._lane, self._present()
        asked = state["asked"][lane, t]  # [B, 2, 2]
        granted, accepted = self._negotiate(action, asked, lane, t)
        shift = np.where(accepted[:, None], offers.ACTIONS[action], 0)
        state["tw"][lane[:, None], _nodes(t)] = 60 * granted
        state["table"][lane, t] = _table_row(state["cells"], granted, lane, t)
        state["accepted"][:], state["handled"][:] = accepted, t + 1
        state["penalty"][:] = settings.patience * np.abs(shift).sum(1)
        before, noop_before = state["cost"].copy(), state["noop_cost"].copy() if settings.follows_noop else 0.0

        cost = self._price(asked, lane, t)
        rise = cost["negotiated"] - before
        if settings.reward == "incremental":
            reward = -rise
        elif settings.reward == "counterfactual":
            reward = cost["unshifted"] - cost["negotiated"]
        else:
            reward = cost["noop"] - noop_before - rise
        reward = reward - state["penalty"]

        state["step"][:] = t + 1
        terminated = state["step"] >= settings.customers
        if settings.terminate_on_failure:
            failed = self._failed()
            reward, terminated = np.where(failed, FAILURE_REWARD, reward), terminated | failed
        return reward, terminated, np.zeros(self.num_envs, np.bool_)

    def _present(self) -> np.ndarray:
        """[B] index of the request now asking; the last one where the episode is over."""
        return np.minimum(self.state["step"], self.settings.customers - 1)

    def _negotiate(self, action: np.ndarray, asked: np.ndarray, lane: np.ndarray, t: np.ndarray) -> tuple[Array, Array]:
        """Windows as agreed [B, 2, 2], and whether the offer was accepted [B].

        An offer that no vehicle could keep (its windows run into midnight) counts as declined.
        """
        state, settings = self.state, self.settings
        if settings.acceptance == "limits":
            accepted = offers.accept_by_limits(state["limit"][lane, t], action)
        elif settings.acceptance == "types":
            accepted = offers.TYPE_ACCEPTS[state["type"][lane, t], action]
        elif settings.acceptance == "logit":
            accepted = offers.accept_by_logit(state["limit"][lane, t], action, self.rng.uniform(), settings.beta)
        else:
            who, trip = state["user"][lane, t] - 1, state["trip"][lane, t]
            accepted = self.scenario.pool.accepts[who, trip, state["type"][lane, t], action]  # type: ignore[index]
        shifted = offers.shift_windows(asked, offers.ACTIONS[action], settings.shift_mode == "widen")
        origin, dest = state["cells"][lane, _nodes(t).T]
        accepted = accepted & ~unservable(self.scenario, origin, dest, shifted)
        return np.where(accepted[:, None, None], shifted, asked), accepted

    def _price(self, asked: np.ndarray, lane: np.ndarray, t: np.ndarray) -> dict[str, np.ndarray]:
        """Ask the oracle about all variants at once, keep the plans, return the costs [B] by variant."""
        state, settings = self.state, self.settings
        variants = {"negotiated": (state["routes"], state["tw"])}  # plans and windows
        if settings.reward == "counterfactual":
            unshifted = state["tw"].copy()
            unshifted[lane[:, None], _nodes(t)] = 60 * asked
            variants["unshifted"] = (state["routes"], unshifted)
        if settings.follows_noop:
            never = state["tw"].copy()
            never[:, 1:] = 60 * state["asked"].reshape(self.num_envs, -1, 2)
            variants["noop"] = (state["noop_routes"], never)
        plans, windows = (np.stack(part, 1) for part in zip(*variants.values(), strict=True))
        solution = self.oracle(plans, state["cells"], windows, np.arange(settings.customers) <= t[:, None])
        state["cost"][:], state["vehicles"][:] = solution.cost[:, 0], solution.vehicles[:, 0]
        state["routes"][:] = solution.routes[:, 0]
        if settings.follows_noop:
            state["noop_cost"][:], state["noop_routes"][:] = solution.cost[:, -1], solution.routes[:, -1]
        return dict(zip(variants, solution.cost.T, strict=True))

    def _route(self, plan: np.ndarray, cells: np.ndarray, tw: np.ndarray, booked: np.ndarray) -> Solution:
        """The routing oracle over lanes and variants: plan [L, V, T], cells [L, N], tw [L, V, N, 2], booked [L, n]."""
        lanes, variants = plan.shape[:2]
        cells, booked = (np.repeat(array, variants, axis=0) for array in (cells, booked))
        plan, tw = (array.reshape(lanes * variants, *array.shape[2:]) for array in (plan, tw))
        solution = self.router.insert(plan, cells, tw, booked, group=variants)
        return Solution(*(array.reshape(lanes, variants, *array.shape[1:]) for array in solution))

    def _describe(self, lane: int) -> str:
        return f"request {int(self.state['handled'][lane])} of traveller {int(self._handled_user()[lane])}"

    # ------------------------------------------------------------------ what is seen

    def observe(self) -> Tree:
        state, t = self.state, self._present()
        table = state["table"].copy()
        asks = state["step"] < self.settings.customers
        asking = np.flatnonzero(asks)
        table[asking, -1] = _table_row(state["cells"], state["asked"][self._lane, t], self._lane, t)[asking]
        customer = np.where(asks, state["user"][self._lane, t], 0)
        trip = state["trip"][self._lane, t]
        return self.encoder.encode(table, state["step"], self.action_mask(), customer, trip, self._quote(t))

    def _quote(self, t: np.ndarray) -> np.ndarray | None:
        """[B, 16] what the request now asking would cost under every offer, if that is to be seen."""
        if not self.settings.quotes or self.settings.obs_mode == "raw":
            return None
        state, asked = self.state, self.state["asked"][self._lane, t]
        windows = offers.shift_windows(asked[:, None], offers.ACTIONS, self.settings.shift_mode == "widen")
        booked = np.arange(self.settings.customers) < state["step"][:, None]
        return self._quoter.quote(state["routes"], state["cells"], state["tw"], booked, t, 60 * windows)

    def inform(self) -> dict[str, Array]:
        """Facts about the request just handled (zeros before the first) and the plan as it stands."""
        state, handled = self.state, np.maximum(self.state["handled"] - 1, 0)
        info = {
            "current_cost": state["cost"],
            "accepted": state["accepted"],
            "patience_penalty": state["penalty"],
            "num_requests": state["step"],
            "user_id": self._handled_user(),
            "purpose": state["purpose"][self._lane, handled],
            "trip": state["trip"][self._lane, handled],
            "vehicles": state["vehicles"],
            "solver_failed": self._failed(),
        }
        return {**info, "noop_cost": state["noop_cost"]} if self.settings.follows_noop else info

    def _handled_user(self) -> np.ndarray:
        handled = self.state["handled"]
        return np.where(handled > 0, self.state["user"][self._lane, np.maximum(handled - 1, 0)], 0)

    def _failed(self) -> np.ndarray:
        return self.state["vehicles"] > self.scenario.fleet.size

    # ------------------------------------------------------------------ state

    def _get_state(self) -> State:
        return {**super()._get_state(), "masks": self.masks.copy()}

    def _set_state(self, state: State) -> None:
        super()._set_state(state)
        self.set_masks(state["masks"])


def _empty_state(num_envs: int, customers: int, follows_noop: bool) -> dict[str, np.ndarray]:
    B, n = num_envs, customers
    state: dict[str, np.ndarray] = {name: np.zeros((B, n), np.int16) for name in ("user", "trip", "type", "purpose")}
    state |= {
        "limit": np.zeros((B, n, 2), np.int16),
        "asked": np.zeros((B, n, 2, 2), np.int32),  # minutes
        "cells": np.zeros((B, 2 * n + 1), np.int32),
        "tw": np.zeros((B, 2 * n + 1, 2), np.int32),  # seconds, of what is booked
        "table": np.zeros((B, n, 6), np.float32),  # the raw observation of what is booked
        "routes": np.zeros((B, 3 * n + 1), np.int16),
        "cost": np.zeros(B),
        "vehicles": np.zeros(B, np.int64),
        "step": np.zeros(B, np.int64),
        "handled": np.zeros(B, np.int64),  # the request of the latest step, from 1; 0 before any
        "accepted": np.zeros(B, np.bool_),
        "penalty": np.zeros(B),
    }
    if follows_noop:
        state |= {"noop_routes": np.zeros((B, 3 * n + 1), np.int16), "noop_cost": np.zeros(B)}
    return state


def _table_row(cells: np.ndarray, window: np.ndarray, lane: np.ndarray, t: np.ndarray) -> np.ndarray:
    """One request per lane as [B, 6]: pickup cell and window, dropoff cell and window."""
    ends = cells[lane[:, None], _nodes(t)]
    return np.concatenate([ends[..., None], window], -1).reshape(len(lane), 6)


def _nodes(t: np.ndarray) -> np.ndarray:
    """[B, 2] the pickup and the dropoff of request `t` [B]."""
    return 2 * t[:, None] + np.array([1, 2])
