"""A policy as a `torch.export` program: `program.module()(obs, action_mask, state) -> (action, state)`."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from shoal.errors import ConfigError
from shoal.policy.export.opened import Exportable, Notes, read_notes
from shoal.policy.policy import Policy, Turn
from shoal.trees import map_tree

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_NOTES = "shoal.json"


def write(opened: Exportable, path: Path) -> list[Path]:
    """Write the program, for any number of rows."""
    program = traced(opened)
    with warnings.catch_warnings(action="ignore"):  # about its own way of storing
        torch.export.save(program, path, extra_files={_NOTES: json.dumps(opened.notes)})
    return [path]


def traced(opened: Exportable) -> ExportedProgram:
    """The program of the best action; `ConfigError` for a network that decides by Python what it computes."""
    rows = torch.export.Dim("rows", min=1)
    example = opened.example(2)
    shapes = tuple(None if part is None else map_tree(lambda leaf: {0: rows}, part) for part in example)
    try:
        with warnings.catch_warnings(action="ignore"), torch.no_grad():
            return torch.export.export(opened.module, example, dynamic_shapes=shapes)
    except Exception as error:  # torch has dozens of kinds for the same thing
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ConfigError(f"The network of {opened.about} cannot be exported: {reason}") from error


class _Program:
    def __init__(self, path: Path) -> None:
        extra = {_NOTES: ""}
        try:
            self._module = torch.export.load(path, extra_files=extra).module()
        except Exception as error:  # whatever a damaged archive may cause
            raise ConfigError(f"{path} is not a torch.export program: {error}") from error
        self.notes: Notes = read_notes(extra[_NOTES], path)

    def __call__(self, turn: Turn) -> tuple[np.ndarray, np.ndarray | None]:
        parts, mask, state = self.notes.inputs(turn)
        tensors = iter([torch.from_numpy(part) for part in parts])
        obs = map_tree(lambda leaf: next(tensors), turn.obs)
        with torch.no_grad():
            action, after = self._module(obs, _tensor(mask), _tensor(state))
        return action.numpy(), None if after is None else after.numpy()


def load_torch(path: Path) -> Policy:
    """The policy in a file that `write` wrote."""
    program = _Program(path)
    return Policy(program.notes.observation_space, program.notes.action_space, program, program.notes.about)


def _tensor(array: np.ndarray | None) -> Tensor | None:
    return None if array is None else torch.from_numpy(array)
