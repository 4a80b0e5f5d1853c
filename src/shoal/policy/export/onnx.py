"""A policy as an ONNX graph: inputs `obs` (or one for each part), `action_mask`, `state`; outputs `action`, `state`."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from shoal.errors import ConfigError, missing_extra
from shoal.policy.export.opened import Exportable, input_names, read_notes
from shoal.policy.export.torch import traced
from shoal.policy.policy import Policy, Turn

_NOTES = "shoal"


def write(opened: Exportable, path: Path) -> list[Path]:
    """Write the graph, for any number of rows, and try it once."""
    onnx = _imported("onnx")
    _imported("onnxscript")
    names = input_names(opened.observation_space, opened.action_space, opened.state_size)
    outputs = ["action", "next_state"] if opened.state_size else ["action"]
    program = traced(opened)
    with _quiet():
        graph = torch.onnx.export(program, (), dynamo=True, input_names=names, output_names=outputs, verbose=False)
    assert graph is not None
    model = graph.model_proto
    onnx.helper.set_model_props(model, {_NOTES: json.dumps(opened.notes)})
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return [path]


class _Session:
    def __init__(self, path: Path) -> None:
        runtime = _imported("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # a policy is small: threads cost more than they bring
        options.log_severity_level = 3
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own kinds, one for each cause
            raise ConfigError(f"{path} is not an ONNX graph: {error}") from error
        self.notes = read_notes(self._session.get_modelmeta().custom_metadata_map.get(_NOTES), path)
        self._names = [given.name for given in self._session.get_inputs()]

    def __call__(self, turn: Turn) -> tuple[np.ndarray, np.ndarray | None]:
        parts, mask, state = self.notes.inputs(turn)
        given = [part for part in (*parts, mask, state) if part is not None]
        results = self._session.run(None, dict(zip(self._names, given, strict=True)))
        return results[0], results[1] if self.notes.state_size else None


def load_onnx(path: Path) -> Policy:
    """The policy in a file that `write` wrote."""
    session = _Session(path)
    return Policy(session.notes.observation_space, session.notes.action_space, session, session.notes.about)


def _imported(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise missing_extra(name, "export", "An ONNX policy") from None


@contextlib.contextmanager
def _quiet() -> Any:
    """Without what the exporter says about its own insides."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logger.setLevel(level)
