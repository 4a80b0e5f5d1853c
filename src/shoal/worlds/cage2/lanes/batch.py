"""A batch of lanes from the options, and red's decisions given from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shoal.errors import ConfigError
from shoal.vector.batch import check_num_envs
from shoal.vector.kernel import KernelBatch
from shoal.world import BatchOptions
from shoal.worlds.cage2.lanes.kernel import Cage2, Cage2Masked
from shoal.worlds.cage2.lanes.names import COMPLIANCES, RED_AGENTS
from shoal.worlds.cage2.lanes.tables import variant_params
from shoal.worlds.cage2.lanes.workflow import Spelling, as_workflows

if TYPE_CHECKING:
    from shoal.worlds.cage2.world import Cage2Options

DECISIONS = {"kind": 5, "target": 12, "exploit": 7, "noticed": 1, "pick": 2, "green": 13}
"""What can be given, and the largest number of each."""
_ALIKE = (
    *("green", "scan_memory", "decoy_memory", "host_memory"),
    *("alignment_weight", "step_bonus", "step_penalty", "no_fix_penalty"),
)


def make_lanes(num_envs: int, options: Cage2Options, batch: BatchOptions) -> KernelBatch:
    """Networks to defend, with settings dealt out to the lanes in turn."""
    num_envs = check_num_envs(num_envs)
    params = {
        **variant_params(options.variant),
        **{name: getattr(options, name) for name in _ALIKE},
        "cage_table": options.table == "cage",
        "reduced_actions": options.actions == "reduced",
        "show_workflow": options.workflow is not None,
        "compliance": COMPLIANCES.index(options.compliance),
    }
    if options.mask == "none":
        kernel = Cage2(**params)
    else:
        kernel = Cage2Masked(**params, needs_evidence=options.mask == "evidence")
    lanes = {
        "red": deal([RED_AGENTS.index(name) for name in options.reds], num_envs),
        "length": deal(options.lengths, num_envs),
        "workflow": deal_workflows(options.workflow, num_envs),
        **{f"given_{name}": -1 for name in DECISIONS},
    }
    return KernelBatch(kernel, num_envs, lanes=lanes, **batch.only("autoreset_mode", "copy", "num_threads", "compiled"))


def deal(values: Sequence[object], num_envs: int) -> np.ndarray:
    """[B, ...]: the values to the lanes in turn."""
    return np.array(values)[np.arange(num_envs) % len(values)]


def deal_workflows(workflow: Spelling | Sequence[Spelling] | None, num_envs: int) -> np.ndarray:
    """[B, 5] unit types in order; any order where there is no workflow."""
    return deal(as_workflows(0 if workflow is None else workflow), num_envs).astype(np.int8)


def give(batch: KernelBatch, **decisions: npt.ArrayLike) -> None:
    """Decide for red (and for chance) from outside, from the next step until given anew. One number, or [B].

    Args:
        kind, target: red's action for lanes with red="given": a number of `RED_ACTIONS`, and a subnet or host. For
            other reds `target` decides their draws: B-line's way in, Meander's next host.
        exploit: which exploit (0..7). noticed: whether a new reverse shell is noticed (0, 1). pick: which foothold is
            escalated (0 SSH, 1 noticed shell, 2 unnoticed shell). green: which host green scans, 13 for none.

    -1 leaves a decision to chance again; so does one that the rules do not offer at that moment.
    """
    for name, value in decisions.items():
        if name not in DECISIONS:
            raise ConfigError(f"There is no decision {name!r} to give. There are {', '.join(DECISIONS)}.")
        low, high = np.min(value), np.max(value)
        if low < -1 or high > DECISIONS[name]:
            raise ConfigError(
                f"{name} ranges from {low} to {high}. Give numbers from -1 (by chance) to {DECISIONS[name]}."
            )
    batch.set_lanes(**{f"given_{name}": value for name, value in decisions.items()})
