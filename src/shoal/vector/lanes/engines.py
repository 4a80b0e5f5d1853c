"""Simulators that keep their state outside Python: MuJoCo and the Arcade Learning Environment, as plain values.

An environment around one of them cannot be pickled as it stands. What the simulator holds is read through its own
interface and written back into another environment of the same kind; all other attributes are pickled.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

_OF_THE_PROCESS = ("mujoco.", "pygame", "gymnasium.envs.mujoco.mujoco_rendering", "ale_py.")
"""Where types live whose objects belong to the process: models, renderers, windows, emulators."""
_ARRAYS, _ALE = "mujoco arrays", "ale state"


def has_engine(env: gym.Env) -> bool:
    """Whether `env` is such an environment."""
    return any(_kind(value) is not None for value in vars(env.unwrapped).values())


def save_parts(env: gym.Env) -> dict[str, Any]:
    """The attributes of the environment without its wrappers, simulators by what they hold."""
    saved: dict[str, Any] = {}
    for name, value in vars(env.unwrapped).items():
        kind = _kind(value)
        if kind == _ARRAYS:
            saved[name] = (kind, _mujoco_arrays(value))
        elif kind == _ALE:
            saved[name] = (kind, value.cloneSystemState())
        elif not type(value).__module__.startswith(_OF_THE_PROCESS):
            saved[name] = ("", value)
    return saved


def load_parts(env: gym.Env, saved: dict[str, Any]) -> None:
    """Write what `save_parts` returned into another environment of the same kind."""
    core = env.unwrapped
    for name, (kind, value) in saved.items():
        if kind == _ARRAYS:
            _set_mujoco_arrays(core.model, getattr(core, name), value)  # type: ignore[attr-defined]
        elif kind == _ALE:
            getattr(core, name).restoreSystemState(value)
        else:
            setattr(core, name, value)


def _kind(value: object) -> str | None:
    module, name = type(value).__module__, type(value).__name__
    if name == "MjData" and module.startswith("mujoco"):
        return _ARRAYS
    return _ALE if name == "ALEInterface" and module.startswith("ale_py") else None


def _mujoco_arrays(data: Any) -> dict[str, np.ndarray]:
    """Everything that a step reads or leaves behind: also what follows from positions and speeds lags a substep after
    them, so it cannot be computed again."""
    import mujoco

    arrays = {name: getattr(data, name) for name in dir(data) if not name.startswith("_")}
    kept = {name: np.array(value) for name, value in arrays.items() if isinstance(value, np.ndarray)}
    state = np.empty(mujoco.mj_stateSize(data.model, mujoco.mjtState.mjSTATE_INTEGRATION))
    mujoco.mj_getState(data.model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    return {**kept, "": state}


def _set_mujoco_arrays(model: Any, data: Any, arrays: dict[str, np.ndarray]) -> None:
    import mujoco

    mujoco.mj_setState(model, data, arrays[""], mujoco.mjtState.mjSTATE_INTEGRATION)
    mujoco.mj_forward(model, data)  # lists of contacts and constraints have their lengths again
    for name, value in arrays.items():
        mine = getattr(data, name) if name else None
        if isinstance(mine, np.ndarray) and mine.shape == value.shape:
            mine[...] = value
