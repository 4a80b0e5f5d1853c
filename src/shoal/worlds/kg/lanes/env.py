"""`KGBatch`: lanes that each prove one query after another."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ActionError, ConfigError, StateError
from shoal.seeding import Seed, Seeds, lane_keys
from shoal.trees import leaves
from shoal.vector.batch import Array, Batch, State, Step, episode_over
from shoal.vector.spaces import as_actions, check_action_range
from shoal.world import BatchOptions
from shoal.worlds.kg.lanes.data.dataset import Dataset
from shoal.worlds.kg.lanes.engine.cpu import CompiledFill, CpuEngine, lane_functions
from shoal.worlds.kg.lanes.engine.tables import Lanes, make_lanes, make_settings, make_tables, num_variables
from shoal.worlds.kg.lanes.options import EngineOptions, ProofOptions
from shoal.worlds.kg.lanes.queries import Asked, make_source

if TYPE_CHECKING:
    from shoal.worlds.kg.lanes.tensor.resident import TensorFill

_INFOS = ("depth", "label", "query", "query_depth", "item", "success", "idle", "n_successors", "n_cut", "n_skipped")
_METADATA = {"renderer": "shoal.worlds.kg.rendering:PROOFS"}
_LOOK_AFTER = 4096  # states seen before judging whether max_states is too small
_TOO_MANY_CUT = 0.5


class Scorer(Protocol):
    """What the environment asks of a KGE model."""

    def log_score(self, triples: np.ndarray) -> np.ndarray:
        """Log-probability [m] of ground triples [m, 3] in the world's ids."""


@dataclass(frozen=True)
class Ragged:
    """The observation without padding: M actions in all."""

    state: np.ndarray  # [B, A, 3] int32
    successors: np.ndarray  # [M, A, 3] int32
    owner: np.ndarray  # [M] int32, the lane of each
    start: np.ndarray  # [B] int64, where a lane's actions begin
    count: np.ndarray  # [B] int32


class KGBatch(Batch):
    """Proof search by SLD resolution: a state is a list of goals, an action picks one of its successors.

    Args:
        data: knowledge base and queries.
        options: how queries are proved and rewarded.
        asked: which queries, and how lanes take them; the training split at random if not given.
        kge: a model for reward shaping, and for cutting by score.
        engine: what lists the actions.
        batch: `autoreset_mode`, `copy`, and `num_threads` of the compiled engine (one if none).
    """

    state_is_data = True

    def __init__(
        self,
        num_envs: int,
        data: Dataset,
        options: ProofOptions | None = None,
        asked: Asked | None = None,
        *,
        kge: Scorer | None = None,
        engine: EngineOptions | None = None,
        batch: BatchOptions | None = None,
    ) -> None:
        self._fill: CompiledFill | TensorFill | None = None
        self._tensor: TensorFill | None = None  # the same, where lanes are on a device too
        self.data, self.options, self.kge = data, options or ProofOptions(), kge
        batch = batch or BatchOptions()
        if self.options.needs_kge and kge is None:
            raise ConfigError("shaping and cut='kge' ask a KGE model, but none was given. Pass kge=...")
        self._settings = make_settings(self.options, data.kb.vocabulary)
        super().__init__(
            num_envs,
            self._observation_space(),
            gym.spaces.Discrete(self.options.max_states),
            autoreset_mode=batch.autoreset_mode,
            has_action_mask=True,
            copy=batch.copy,
            metadata=_METADATA,
        )
        self._layout = [(array.shape, array.dtype) for array in leaves(self.empty_step())]
        self._asked = asked or Asked()
        self.source = make_source(data, self._asked, self.options, self.num_envs)
        self.lanes: Lanes = make_lanes(self.num_envs, self._settings, self.options.max_atoms)
        self._fill = self._make_fill(engine or EngineOptions(), 1 if batch.num_threads is None else batch.num_threads)
        self._functions = lane_functions()
        self._tables = make_tables(data.kb, self.options.max_atoms)
        past = self.lanes.history.shape[1]
        self._single = CpuEngine(data.kb, self.options.max_atoms, past) if self.options.cut == "kge" else None
        self._potential = np.zeros(self.num_envs)
        self._everyone = np.ones(self.num_envs, np.bool_)
        self._final_mask = np.zeros((self.num_envs, self.options.max_states), np.bool_)  # written, never read
        # how much of each lane's successors in the batch's own buffers is not zero: the rest need not be cleared again
        self._dirty, self._final_dirty = np.zeros((2, self.num_envs), np.int32)
        self._seen, self._cut, self._warned = 0, 0, False
        self._seeded = False

    def _observation_space(self) -> gym.Space:
        vocabulary, S, A = self.data.kb.vocabulary, self.options.max_states, self.options.max_atoms
        terms = vocabulary.num_term_ids(num_variables(self.data.kb, A))
        high = np.array([vocabulary.num_predicate_ids - 1, terms - 1, terms - 1], np.int32)
        one, many = (gym.spaces.Box(0, np.broadcast_to(high, (k, A, 3)), dtype=np.int32) for k in (1, S))
        return gym.spaces.Dict({"sub_index": one, "derived_sub_indices": many})

    def _make_fill(self, engine: EngineOptions, num_threads: int | str) -> CompiledFill | TensorFill:
        kb, lanes = self.data.kb, self.lanes
        if engine.engine == "compiled":
            return CompiledFill(kb, lanes, num_threads, keep_expansions=engine.keep_expansions)
        from shoal.worlds.kg.lanes.tensor.resident import TensorFill

        self._tensor = TensorFill(kb, lanes, self._settings, device=engine.engine_device, fact_cap=engine.fact_cap)
        return self._tensor

    # ------------------------------------------------------------------ what a user may also call

    def set_depth_weights(self, weights: Mapping[int, float] | None) -> None:
        """Draw training queries by these weights of their annotated depths from now on: a curriculum."""
        self._asked = replace(self._asked, depth_weights=weights)
        self.source = make_source(self.data, self._asked, self.options, self.num_envs)._replace(
            cursor=self.source.cursor
        )

    def get_settings(self) -> Mapping[int, float] | None:
        return self._asked.depth_weights

    def set_settings(self, settings: Mapping[int, float] | None) -> None:
        if settings != self._asked.depth_weights:
            self.set_depth_weights(settings)

    def ragged(self, which: np.ndarray | None = None) -> Ragged:
        """The current observation without padding, for the lanes in `which` [B] bool or for all."""
        which = self._everyone if which is None else which
        total = int(self.lanes.num_actions[which].sum())
        rows = np.empty((total, self.options.max_atoms, 3), np.int32)
        owner, start = np.empty(total, np.int32), np.empty(self.num_envs, np.int64)
        self._functions["gather"](self.lanes, which, rows, owner, start)
        count = np.where(which, self.lanes.num_actions, 0).astype(np.int32)
        return Ragged(self.lanes.state.copy(), rows, owner, start, count)

    def branch(self, target: np.ndarray, parent: np.ndarray, state: np.ndarray) -> None:
        """Lanes `target` [r] go on from lanes `parent` [r] with the states [r, A, 3]."""
        lanes = self.lanes
        for array in (lanes.query, lanes.history, lanes.num_past, lanes.episode_key):
            array[target] = array[parent]
        lanes.state[target] = state
        multiplier = self._tables.multiplier[: 3 * self.options.max_atoms].reshape(-1, 3)
        code = (state.astype(np.int64) * multiplier).sum((1, 2))
        lanes.history[target, lanes.num_past[target]] = code
        lanes.num_past[target] += 1
        if self._tensor is not None:
            self._tensor.load_rows(lanes, target)

    def close_twins(self, states: np.ndarray) -> np.ndarray:
        """States [r, A, 3] as the lanes enter them: a `_kge` twin in front counts as proved."""
        closed = states.copy()
        twin = states[:, 0, 0] > self._settings.end_true
        closed[twin] = np.roll(states[twin], -1, axis=1)
        closed[twin, -1] = 0
        closed[twin & (closed[:, 0, 0] == 0), 0, 0] = self._settings.true
        return closed

    @property
    def cut_share(self) -> float:
        """Share of the states seen so far of which successors were cut."""
        return self._cut / max(1, self._seen)

    # ------------------------------------------------------------------ the contract

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, Any]) -> dict[str, Any]:
        self._check_buffers(out)
        which = self._everyone.copy() if mask is None else mask
        if seed is not None or not self._seeded:
            named = which & [s is not None for s in seed] if isinstance(seed, list) and self._seeded else which
            self.lanes.rng[named] = lane_keys(seed, self.num_envs).view(np.int64)[named]
            self.lanes.draws[named] = self.lanes.negatives[named] = 0
            first = seed.first_lane if isinstance(seed, Seed) else 0
            self.lanes.number[named] = np.arange(first, first + self.num_envs)[named]
            self._seeded = True
        if mask is None and self._asked.mode in ("eval", "pool"):  # every query again, each once
            self.lanes.draws[:] = 0
            self.source.cursor[0] = 0
        self._begin(which)
        self.list_actions(which)
        self._look(out, which)
        if self.options.shaping:
            self._potential[which] = self._potentials(which)
        return self._info(out)

    def _step_lanes(self, action: Array, out: Step) -> dict[str, Any]:
        action = as_actions(action, self.single_action_space, self.num_envs)
        check_action_range(action, self.single_action_space)
        self._check_buffers(out)
        lanes, waiting = self.lanes, self.lanes.ended.copy()
        if waiting.any() and self.autoreset_mode == AutoresetMode.DISABLED:
            raise episode_over(int(np.flatnonzero(waiting)[0]))
        self._check_allowed(action, waiting)
        self._functions["advance"](
            self._tables, self._settings, lanes, action, ~waiting, out.reward, out.terminated, out.truncated
        )
        if self._tensor is not None:
            self._tensor.advance(action, ~waiting & ~lanes.idle)
        done = out.terminated | out.truncated
        if waiting.any():
            self._begin(waiting)
        ended = self._finish(done, out) if done.any() else {}
        self.list_actions(self._everyone if self.autoreset_mode == AutoresetMode.SAME_STEP else ~done | waiting)
        if self.options.shaping:
            self._shape(out, done, waiting)
        self._look(out, self._everyone)
        return {**self._info(out), **ended}

    def _check_allowed(self, action: np.ndarray, waiting: np.ndarray) -> None:
        """`ActionError` for an action that the mask of its lane forbids; lanes that only begin anew may name any."""
        lanes = self.lanes
        forbidden = np.flatnonzero((action >= lanes.num_actions) & ~waiting & ~lanes.idle)
        if len(forbidden):
            lane = forbidden[0]
            raise ActionError(
                f"The action of lane {lane} is forbidden: {action[lane]}. Its action_mask allows 0 to "
                f"{lanes.num_actions[lane] - 1}; no lane has moved."
            )

    def _finish(self, done: np.ndarray, out: Step) -> dict[str, Any]:
        """List what the final states lead to; under SAME_STEP keep them and begin the next episodes."""
        self.list_actions(done)
        lanes = self.lanes
        self._final_total = lanes.total.copy()  # shaping may still add to it
        length, seconds = lanes.depth.astype(np.int64), time.perf_counter() - lanes.began
        info: dict[str, Any] = {"episode": {"r": self._final_total, "l": length, "t": seconds}, "_episode": done}
        if self.options.shaping:
            self._final_potential = np.where(out.truncated, self._potentials(done), 0.0)
        if self.autoreset_mode != AutoresetMode.SAME_STEP:
            return info
        self._write_obs(out.final_obs, done, self._final_mask, self._final_dirty if out is self._buffers else None)
        final = {name: getattr(lanes, name).copy() for name in _INFOS}
        info |= {"final_obs": out.final_obs, "_final_obs": done, "final_info": final, "_final_info": done}
        self._begin(done)
        return info

    def _get_state(self) -> State:
        return {name: array.copy() for name, array in self._remembered().items()}

    def _remembered(self) -> State:
        own = {name: array for name, array in self.lanes._asdict().items() if name != "began"}
        return {**own, "cursor": self.source.cursor, "potential": self._potential}

    def _set_state(self, state: State) -> None:
        targets = self._remembered()
        for name, target in targets.items():
            if name not in state or state[name].shape != target.shape:
                got = state[name].shape if name in state else "absent"
                raise StateError(
                    f"This state does not fit: {name!r} is {got}, but {target.shape} is needed. "
                    "Use a state of the same data, options and num_envs."
                )
        for name, target in targets.items():
            target[...] = state[name]
        if self._tensor is not None:
            self._tensor.load(self.lanes)
        self.lanes.began[:] = time.perf_counter()
        self._seeded = True

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        if isinstance(self._fill, CompiledFill):
            self._fill.close()

    # ------------------------------------------------------------------ pieces

    def _begin(self, which: np.ndarray) -> None:
        self._functions["begin"](self._tables, self._settings, self.source, self.lanes, which, time.perf_counter())
        if self._tensor is not None:
            self._tensor.load_rows(self.lanes, np.flatnonzero(which))

    def list_actions(self, which: np.ndarray) -> None:
        """List the actions of the lanes in `which` [B] bool: after every step, and for searches that set states."""
        assert self._fill is not None
        lanes = self.lanes
        self._fill(self._settings, lanes, which)
        cut = np.flatnonzero(which & (lanes.n_cut > 0))
        if self._single is not None:
            for lane in cut:
                self._cut_by_score(int(lane), self._single)
            if self._tensor is not None:
                self._tensor.load_successors(lanes, cut)
        self._seen += int(np.count_nonzero(which))
        self._cut += len(cut)
        if not self._warned and self._seen >= _LOOK_AFTER and self.cut_share > _TOO_MANY_CUT:
            self._warned = True
            warnings.warn(
                f"Successors were cut in {self.cut_share:.0%} of {self._seen} states: "
                f"max_states={self.options.max_states} is too small for {self.data.name!r}. Raise it.",
                stacklevel=4,
            )

    def _cut_by_score(self, lane: int, engine: CpuEngine) -> None:
        """Keep the successors whose first goal the KGE model finds likeliest; a goal with variables scores 0."""
        lanes, options = self.lanes, self.options
        past = lanes.history[lane, : lanes.num_past[lane]] if options.memory else lanes.history[lane, :0]
        goals = lanes.state[lane][lanes.state[lane, :, 0] > 0]
        bound_first = options.selection == "bound_first"
        rows = engine.expand(goals, lanes.query[lane], bound_first=bound_first, history=np.ascontiguousarray(past)).rows
        score = self._first_goal_scores(np.stack([row[0] for row in rows]))
        room = options.max_states - options.num_extra
        best = np.sort(np.argsort(-score, kind="stable")[:room])
        for place, row in enumerate(best):
            lanes.successors[lane, place] = 0
            lanes.successors[lane, place, : len(rows[row])] = rows[row]

    def _first_goal_scores(self, goals: np.ndarray) -> np.ndarray:
        """Log KGE score [m] of goals [m, 3]; 0 for those that are not ground atoms of a regular predicate."""
        assert self.kge is not None
        vocabulary = self.data.kb.vocabulary
        regular = (goals[:, 0] > 0) & (goals[:, 0] <= vocabulary.num_regular)
        ground = regular & (goals[:, 1:] <= vocabulary.num_constants).all(1)
        score = np.zeros(len(goals))
        if ground.any():
            score[ground] = np.maximum(self.kge.log_score(goals[ground]), np.log(1e-9))
        return score

    def _potentials(self, which: np.ndarray) -> np.ndarray:
        """Potential [B] of the lanes' current states; 0 elsewhere."""
        potential = np.zeros(self.num_envs)
        potential[which] = self.options.shaping * self._first_goal_scores(self.lanes.state[which, 0])
        return potential

    def _shape(self, out: Step, done: np.ndarray, waiting: np.ndarray) -> None:
        """Add gamma * potential(next) - potential(now) to the reward; the end of a proof has potential 0."""
        after = self._potentials(self._everyone)
        following = np.where(done, self._final_potential, after) if done.any() else after
        bonus = np.where(waiting | self.lanes.idle, 0.0, self.options.shaping_gamma * following - self._potential)
        np.add(out.reward, bonus, out=out.reward, casting="same_kind")
        if done.any():
            self._final_total += np.where(done, bonus, 0.0)
        np.add(self.lanes.total, np.where(done | waiting, 0.0, bonus), out=self.lanes.total)
        self._potential = after

    def _look(self, out: Step, which: np.ndarray) -> None:
        self._write_obs(out.obs, which, out.action_mask, self._dirty if out is self._buffers else None)

    def _write_obs(self, obs: dict[str, Array], which: Array, action_mask: Array, dirty: np.ndarray | None) -> None:
        """Fill in `obs`. `dirty` [B] says how much of it is not zero; None where that is unknown."""
        ours, theirs = (rows.reshape(self.num_envs, -1) for rows in (self.lanes.successors, obs["derived_sub_indices"]))
        dirty = np.full(self.num_envs, theirs.shape[1], np.int32) if dirty is None else dirty
        self._functions["observe"](self.lanes, ours, which, obs["sub_index"], theirs, action_mask, dirty)

    def _info(self, out: Step) -> dict[str, Any]:
        return {**{name: getattr(self.lanes, name) for name in _INFOS}, "action_mask": out.action_mask}

    def _check_buffers(self, out: Step) -> None:
        """Compiled code trusts its arguments, so foreign buffers are checked first."""
        if out is self._buffers:
            return
        for array, (shape, kind) in zip(leaves(out), self._layout, strict=True):
            if array.shape != shape or array.dtype != kind or not array.flags.c_contiguous:
                raise ConfigError(
                    f"step_into() got a buffer of shape {array.shape} and type {array.dtype}; it needs a C-contiguous "
                    f"{shape} of {kind}. Take the buffers from empty_step()."
                )
