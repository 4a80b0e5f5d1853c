"""`KGBatch`: lanes that each prove one query after another."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError, StateError
from shoal.vector.batch import Array, Batch, State, Step
from shoal.vector.seeding import lane_keys
from shoal.vector.spaces import as_actions, check_action_range
from shoal.worlds.kg.dataset import Dataset, Queries
from shoal.worlds.kg.engine.cpu import CompiledFill, CpuEngine, lane_functions
from shoal.worlds.kg.engine.lanes import Lanes, make_lanes
from shoal.worlds.kg.engine.tables import make_tables, num_variables
from shoal.worlds.kg.options import KGOptions
from shoal.worlds.kg.queries import make_source

_INFOS = ("depth", "label", "query", "query_depth", "item", "success", "idle", "n_successors", "n_cut", "n_skipped")
_METADATA = {
    "renderer": "shoal.worlds.kg.rendering:PROOFS",
}
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
        queries: what is asked; the training split if not given.
        label: [m] 1 for true triples and 0 for corruptions, with `queries`.
        mode: "train", "round_robin", "eval" or "pool", see `queries`.
        depth_weights: how often training queries of an annotated depth are drawn, relative to each other.
        kge: a model for reward shaping, and for cutting by score.
        engine: "compiled", or "tensor" for static shapes on `device`.
        num_threads: threads of the compiled engine; an int or "auto".
        keep_expansions: the compiled engine expands a state that comes again only once; for rankings and searches.
        fact_cap: facts per goal that the tensor engine looks at; None is all of them.
        network: settings of the network that is to be trained here, see `network.make_network`.
    """

    def __init__(
        self,
        num_envs: int,
        data: Dataset,
        options: KGOptions | None = None,
        *,
        queries: Queries | None = None,
        label: np.ndarray | None = None,
        mode: str = "train",
        depth_weights: Mapping[int, float] | None = None,
        kge: Scorer | None = None,
        engine: str = "compiled",
        device: str = "cpu",
        num_threads: int | str = 1,
        keep_expansions: bool = False,
        fact_cap: int | None = None,
        network: dict[str, Any] | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
    ) -> None:
        self._fill: Any = None
        self.data, self.options, self.kge = data, options or KGOptions(), kge
        if self.options.needs_kge and kge is None:
            raise ConfigError("shaping and cut='kge' ask a KGE model, but none was given. Pass kge=...")
        self._settings = self.options.settings(data.kb.vocabulary)
        super().__init__(
            num_envs,
            self._observation_space(),
            gym.spaces.Discrete(self.options.max_states),
            autoreset_mode=autoreset_mode,
            has_action_mask=True,
            copy=copy,
            metadata=_METADATA,
        )
        self.network_settings = network or {}
        asked = data.split("train") if queries is None else queries
        self._mode, self._label, self._queries = mode, label, asked
        self.source = make_source(
            data, asked, mode, self.options, self.num_envs, label=label, depth_weights=depth_weights
        )
        self.lanes: Lanes = make_lanes(self.num_envs, self._settings, self.options.max_atoms)
        self._functions = lane_functions()
        self._tables = make_tables(data.kb, self.options.max_atoms)
        if engine == "compiled":
            self._fill = CompiledFill(data.kb, self.lanes, num_threads, keep_expansions=keep_expansions)
        else:
            self._fill = self._tensor_fill(engine, device, fact_cap)
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

        def rows(count: int) -> gym.Space:
            return gym.spaces.Box(
                np.zeros((count, A, 3), np.int32), np.broadcast_to(high, (count, A, 3)), dtype=np.int32
            )

        return gym.spaces.Dict({"sub_index": rows(1), "derived_sub_indices": rows(S)})

    def _tensor_fill(self, engine: str, device: str, fact_cap: int | None) -> Any:
        if engine != "tensor":
            raise ConfigError(f"engine={engine!r} is unknown. Use 'compiled' or 'tensor'.")
        from shoal.worlds.kg.tensor.fill import TensorFill

        return TensorFill(self.data.kb, self.lanes, self._settings, device=device, fact_cap=fact_cap)

    # ------------------------------------------------------------------ what a user may also call

    def set_depth_weights(self, weights: Mapping[int, float] | None) -> None:
        """Draw training queries by these weights of their annotated depths from now on: a curriculum."""
        made = make_source(
            self.data, self._queries, self._mode, self.options, self.num_envs, label=self._label, depth_weights=weights
        )
        self.source = made._replace(cursor=self.source.cursor)

    def ragged(self, which: np.ndarray | None = None) -> Ragged:
        """The current observation without padding, for the lanes in `which` [B] bool or for all."""
        which = self._everyone if which is None else which
        total = int(self.lanes.num_actions[which].sum())
        rows = np.empty((total, self.options.max_atoms, 3), np.int32)
        owner, start = np.empty(total, np.int32), np.empty(self.num_envs, np.int64)
        self._functions["gather"](self.lanes, which, rows, owner, start)
        return Ragged(
            self.lanes.state.copy(), rows, owner, start, np.where(which, self.lanes.num_actions, 0).astype(np.int32)
        )

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

    def _reset_lanes(self, out: Step, seed: Any, mask: np.ndarray | None, options: dict[str, Any]) -> dict[str, Any]:
        self._check_buffers(out)
        which = self._everyone.copy() if mask is None else mask
        if seed is not None or not self._seeded:
            named = which & [s is not None for s in seed] if isinstance(seed, list) and self._seeded else which
            self.lanes.rng[named] = lane_keys(seed, self.num_envs).view(np.int64)[named]
            self.lanes.draws[named] = self.lanes.negatives[named] = 0
            self._seeded = True
        if mask is None and self._mode in ("eval", "pool"):  # every query again, each once
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
            raise StateError(
                f"The episode of lane {np.flatnonzero(waiting)[0]} has ended and autoreset is disabled. "
                "Reset it with reset(options={'reset_mask': mask}) before the next step."
            )
        self._functions["advance"](
            self._tables, self._settings, lanes, action, ~waiting, out.reward, out.terminated, out.truncated
        )
        done = out.terminated | out.truncated
        if waiting.any():
            self._begin(waiting)
        ended = self._finish(done, out) if done.any() else {}
        self.list_actions(self._everyone if self.autoreset_mode == AutoresetMode.SAME_STEP else ~done | waiting)
        if self.options.shaping:
            self._shape(out, done, waiting)
        self._look(out, self._everyone)
        return {**self._info(out), **ended}

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
        own = {name: array.copy() for name, array in self.lanes._asdict().items() if name != "began"}
        return {**own, "cursor": self.source.cursor.copy(), "potential": self._potential.copy()}

    def _set_state(self, state: State) -> None:
        targets = {name: array for name, array in self.lanes._asdict().items() if name != "began"}
        targets |= {"cursor": self.source.cursor, "potential": self._potential}
        for name, target in targets.items():
            if name not in state or state[name].shape != target.shape:
                got = state[name].shape if name in state else "absent"
                raise StateError(
                    f"This state does not fit: {name!r} is {got}, but {target.shape} is needed. "
                    "Use a state of the same data, options and num_envs."
                )
        for name, target in targets.items():
            target[...] = state[name]
        self.lanes.began[:] = time.perf_counter()
        self._seeded = True

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        if isinstance(self._fill, CompiledFill):
            self._fill.close()

    # ------------------------------------------------------------------ pieces

    def _begin(self, which: np.ndarray) -> None:
        self._functions["begin"](self._tables, self._settings, self.source, self.lanes, which, time.perf_counter())

    def list_actions(self, which: np.ndarray) -> None:
        """List the actions of the lanes in `which` [B] bool: after every step, and for searches that set states."""
        lanes = self.lanes
        self._fill(self._settings, lanes, which)
        cut = np.flatnonzero(which & (lanes.n_cut > 0))
        if self._single is not None:
            for lane in cut:
                self._cut_by_score(int(lane), self._single)
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
        assert self.kge is not None
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
        ground = (goals[:, 0] <= vocabulary.num_regular) & (goals[:, 1:] <= vocabulary.num_constants).all(1)
        ground &= goals[:, 0] > 0
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
        B, S, A = self.num_envs, self.options.max_states, self.options.max_atoms
        wanted = [(out.action_mask, (B, S), np.bool_), (out.reward, (B,), np.float32)]
        wanted += [(flags, (B,), np.bool_) for flags in (out.terminated, out.truncated)]
        for obs in (out.obs, out.final_obs):
            wanted.append((obs["sub_index"], (B, 1, A, 3), np.int32))
            wanted.append((obs["derived_sub_indices"], (B, S, A, 3), np.int32))
        for array, shape, kind in wanted:
            if array.shape != shape or array.dtype != kind or not array.flags.c_contiguous:
                raise ConfigError(
                    f"step_into() got a buffer of shape {array.shape} and type {array.dtype}; it needs a C-contiguous "
                    f"{shape} of {np.dtype(kind)}. Take the buffers from empty_step()."
                )
