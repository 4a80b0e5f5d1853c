"""`make_cage2`: a batch of CAGE2 lanes, with the options by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import ConfigError
from shoal.vector.batch import check_num_envs
from shoal.vector.kernel import KernelBatch
from shoal.worlds.cage2.compliance import COMPLIANCES
from shoal.worlds.cage2.kernel import Cage2, Cage2Masked
from shoal.worlds.cage2.names import BLUE_TABLES, RED_AGENTS, VARIANTS, deal, find_code
from shoal.worlds.cage2.tables import variant_params
from shoal.worlds.cage2.workflow import as_workflow

ACTION_SETS = ("full", "reduced")
MASKS = ("none", "useful", "evidence")
DECISIONS = ("kind", "target", "exploit", "noticed", "pick", "green")


def make_cage2(
    num_envs: int,
    *,
    variant: str = "cage2",
    table: str = "seed",
    red: Any = "bline",
    length: Any = 100,
    green: bool = False,
    actions: str = "full",
    mask: str = "none",
    scan_memory: bool = False,
    decoy_memory: bool = False,
    host_memory: bool = False,
    workflow: Any = None,
    compliance: str = "true-state",
    alignment_weight: float = 0.0,
    step_bonus: float = 0.0,
    step_penalty: float = 0.0,
    no_fix_penalty: float = 0.2,
    **batch_options: Any,
) -> KernelBatch:
    """A batch of networks to defend.

    Args:
        variant: "cage2" (today's code), "cage2-2022" (what the public leaderboard was scored on), "debugged".
        table: Blue's table, "seed" (corrected) or "cage" (as shipped with the challenge).
        red: "bline", "meander", "sleep", or "given" (see `give`); several are dealt out to the lanes in turn.
        length: steps of an episode; several are dealt out likewise.
        green: a green agent that scans hosts.
        actions: "full" (145) or "reduced" (36, with lists of decoys).
        mask: "none"; "useful" forbids what Blue knows to be of no use: decoy lists that are used up, Remove where no
            shell was noticed, Restore where Remove is enough; "evidence" also forbids to restore Op_Server0 before a
            foothold there was shown, since one such Restore makes Impact harmless for good.
        scan_memory: append which hosts were scanned last and before, 10 values.
        decoy_memory: append how many decoys Blue has on each host, and how many of them red has been seen to scan, 26
            values: what Blue knows from its own moves.
        host_memory: append what Blue can conclude from the ports that the monitor reports and from its own moves, 72
            values: how red got into each host, which were restored, the latest traffic.
        workflow: append the one-hot of a workflow, 25 values: a name, the unit types in order (as text or a tuple), an
            index 0..119; or a list of these, dealt out to the lanes in turn.
        compliance: "true-state" or "action-order", what counts as following the workflow.
        alignment_weight: lambda of the alignment reward, 0 for none.
        step_bonus, step_penalty: paid per fix that complies or does not, as a share of lambda.
        no_fix_penalty: charged at the end of an episode without any fix, as a share of lambda.
        batch_options: `compiled`, `num_threads`, `autoreset_mode`, `copy`.
    """
    num_envs = check_num_envs(num_envs)
    find_code("CAGE2 variant", variant, VARIANTS)
    mask_code = find_code("CAGE2 action mask", mask, MASKS)
    if workflow is None and alignment_weight != 0:
        raise ConfigError(f"alignment_weight={alignment_weight} pays for following a workflow. Give workflow=... too.")
    params = {
        **variant_params(variant),
        "cage_table": find_code("Blue table", table, BLUE_TABLES) == 1,
        "green": green,
        "reduced_actions": find_code("CAGE2 action set", actions, ACTION_SETS) == 1,
        "scan_memory": scan_memory,
        "decoy_memory": decoy_memory,
        "host_memory": host_memory,
        "show_workflow": workflow is not None,
        "compliance": find_code("compliance", compliance, COMPLIANCES),
        "alignment_weight": alignment_weight,
        "step_bonus": step_bonus,
        "step_penalty": step_penalty,
        "no_fix_penalty": no_fix_penalty,
    }
    kernel = Cage2Masked(**params, needs_evidence=mask_code == 2) if mask_code else Cage2(**params)
    lanes = {
        "red": deal("red", red, num_envs, lambda name: find_code("red agent", name, RED_AGENTS)),
        "length": deal("length", length, num_envs, _check_length),
        "workflow": _deal_workflows(workflow, num_envs),
        **{f"given_{name}": -1 for name in DECISIONS},
    }
    return KernelBatch(kernel, num_envs, lanes=lanes, **batch_options)


def give(batch: KernelBatch, **decisions: Any) -> None:
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
        most = {"kind": 5, "target": 12, "exploit": 7, "noticed": 1, "pick": 2, "green": 13}[name]
        if low < -1 or high > most:
            raise ConfigError(f"{name} ranges from {low} to {high}. Give numbers from -1 (by chance) to {most}.")
    batch.set_lanes(**{f"given_{name}": value for name, value in decisions.items()})


def _deal_workflows(workflow: Any, num_envs: int) -> np.ndarray:
    """[B, 5] unit types in order; any order where there is no workflow."""
    orders = workflow if isinstance(workflow, list) else [0 if workflow is None else workflow]
    if not orders:
        raise ConfigError("workflow is an empty list. Give one workflow, or several to deal out to the lanes in turn.")
    return np.array([as_workflow(order) for order in orders], np.int8)[np.arange(num_envs) % len(orders)]


def _check_length(length: Any) -> int:
    if isinstance(length, bool) or not isinstance(length, int | np.integer) or length < 1:
        raise ConfigError(f"length={length!r} is no number of steps. Pass a whole number of at least 1, such as 100.")
    return int(length)
