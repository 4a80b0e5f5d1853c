"""The compiled engine behind one object: tables, scratch memory and entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np

from shoal.jit import entry_points
from shoal.vector.crew import Crew
from shoal.worlds.kg.lanes.data.knowledge import KnowledgeBase
from shoal.worlds.kg.lanes.data.parse import parse_rule
from shoal.worlds.kg.lanes.data.vocabulary import Vocabulary
from shoal.worlds.kg.lanes.engine import actions, episode, resolve, search
from shoal.worlds.kg.lanes.engine.expansions import make_expansions
from shoal.worlds.kg.lanes.engine.tables import (
    Lanes,
    Settings,
    Tables,
    Work,
    make_lanes,
    make_settings,
    make_tables,
    make_work,
)
from shoal.worlds.kg.lanes.options import ProofOptions


def _toy() -> tuple[Tables, Work, np.ndarray]:
    """Arguments of the right types: these do not depend on the knowledge base."""
    kb = KnowledgeBase.from_atoms([("p", "a", "b")], [parse_rule("r:1:p(x,y) -> p(y,x)")])
    return make_tables(kb, 2), make_work(kb, 2), np.ones((1, 3), np.int32)


@cache
def lane_functions() -> Mapping[str, Callable]:
    """Compiled entry points that work on lanes."""
    tables, work, triples = _toy()
    options = make_settings(ProofOptions(max_states=4, max_depth=3), Vocabulary(["p"], ["a", "b"]))
    lanes = make_lanes(1, options, 2)
    ids, flags, reals = np.zeros(1, np.int32), np.zeros(1, np.bool_), np.zeros(1, np.float32)
    longs, rows = np.zeros(1, np.int64), np.zeros((1, 4, 2, 3), np.int32)
    source = episode.Source(0, triples, ids, ids, np.zeros(0), 1, 3, longs, 1, ids, ids, ids, triples, ids, ids, 2)
    return entry_points(
        "kg",
        {
            actions.fill: (tables, options, lanes, flags, make_expansions(2, False), work),
            episode.begin: (tables, options, source, lanes, flags, 0.0),
            episode.advance: (tables, options, lanes, longs, flags, reals, flags, flags),
            episode.observe: (lanes, triples, flags, rows, triples, np.zeros((1, 4), np.bool_), ids),
            episode.gather: (lanes, flags, rows[0], ids, longs),
        },
    )


@cache
def search_functions() -> Mapping[str, Callable]:
    """Compiled entry points of exact search and of single expansions."""
    tables, work, triples = _toy()
    store, past, state = search.make_store(4, 2), np.zeros(1, np.int64), np.zeros((2, 3), np.int32)
    return entry_points(
        "kg_search",
        {
            resolve.resolve: (tables, state, 1, triples[0], False, False, past, 0, 4, work),
            search.prove: (tables, triples, 3, False, work, store, np.zeros(1, np.int32)),
            search.count_proofs: (tables, triples, False, work, store, np.zeros((1, 1), np.int64)),
        },
    )


_NOTHING = np.zeros(0, np.int64)


class Expansion(NamedTuple):
    """All successors of one state."""

    rows: list[np.ndarray]  # goals [size, 3] of each
    via: np.ndarray  # by which rule or fact it came
    proved: bool


class CompiledFill:
    """Lists the actions of lanes on one or more threads, each with scratch memory of its own.

    With `keep_expansions` a state that comes again is not expanded again. That pays where lanes meet the same states.
    """

    def __init__(
        self, kb: KnowledgeBase, lanes: Lanes, num_threads: int | str = 1, *, keep_expansions: bool = False
    ) -> None:
        num_envs, max_atoms = lanes.state.shape[:2]
        self._tables = make_tables(kb, max_atoms)
        self._crew = Crew(num_threads, num_envs)
        self._work = [make_work(kb, max_atoms, lanes.history.shape[1]) for _ in range(self._crew.size)]
        self.kept = [make_expansions(max_atoms, keep_expansions) for _ in range(self._crew.size)]
        self._fill = lane_functions()["fill"]

    def __call__(self, options: Settings, lanes: Lanes, which: np.ndarray) -> None:
        """Fill in the actions of the lanes in `which` [B] bool; forced moves may advance their state."""
        if self._crew.size == 1:
            self._fill(self._tables, options, lanes, which, self.kept[0], self._work[0])
            return

        def run(chunk: int, low: int, high: int, checked: bool) -> int:
            part = Lanes(*[array[low:high] for array in lanes])
            self._fill(self._tables, options, part, which[low:high], self.kept[chunk], self._work[chunk])
            return 0

        self._crew.step(run, check=lambda: 0)

    def close(self) -> None:
        """End the threads."""
        self._crew.close()


class CpuEngine:
    """Expansion of single states."""

    def __init__(self, kb: KnowledgeBase, max_atoms: int, num_past: int = 0) -> None:
        self.kb, self.max_atoms = kb, max_atoms
        self.tables, self.work = make_tables(kb, max_atoms), make_work(kb, max_atoms, num_past)

    def expand(
        self,
        goals: np.ndarray,
        excluded: np.ndarray,
        *,
        collapse: bool = True,
        bound_first: bool = False,
        history: np.ndarray = _NOTHING,
    ) -> Expansion:
        """Successors of the state `goals` [k, 3]: distinct ones, or a proof; all of them with `collapse=False`.

        Those whose fingerprint is in `history` [h] are left out.
        """
        state = np.zeros((max(self.max_atoms, len(goals)), 3), np.int32)
        state[: len(goals)] = goals
        work, excluded = self.work, np.ascontiguousarray(excluded, np.int32)
        how = (bound_first, not collapse, history, len(history), len(work.size))
        count = search_functions()["resolve"](self.tables, state, len(goals), excluded, *how, work)
        if count == resolve.PROVED:
            return Expansion([], np.zeros(0, np.int32), proved=True)
        rows = [work.rows[i, : work.size[i]].copy() for i in range(count)]
        return Expansion(rows, work.via[:count].copy(), proved=any(len(row) == 0 for row in rows))
