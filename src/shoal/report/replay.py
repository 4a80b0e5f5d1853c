"""Replays: what every lane did in one episode, as JSON that the player draws."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError, RunError
from shoal.options import fit
from shoal.report.page import render_page
from shoal.report.sections import Section
from shoal.seeding import Seed
from shoal.training.files import explained, read_table, replace_file
from shoal.training.interrupt import Stopped
from shoal.training.lab import Policy
from shoal.trees import Tree
from shoal.vector.batch import Batch
from shoal.vector.rendering import renderer_of

MAX_STEPS = 1000


class Lane(TypedDict):
    """One episode. Frames are one more than actions and rewards."""

    lane: int
    frames: list[Any]  # as the renderer makes them
    actions: list[Any]
    rewards: list[float]
    end: str  # "terminated", "truncated" or "cut"


class Replay(TypedDict):
    """What the player and the video read; as JSON in `replays/`."""

    title: str
    renderer: str
    script: str
    fps: float
    meta: dict[str, Any]
    lanes: list[Lane]


def record_replay(
    batch: Batch,
    actor: Policy,
    seed: int | Seed,
    title: str,
    max_steps: int = MAX_STEPS,
    stopping: Callable[[], bool] = lambda: False,
) -> Replay:
    """One episode of every lane. `batch` must have autoreset off, so that the last state of an episode can be seen.

    A lane that is still going after `max_steps` is cut there. `Stopped` as soon as `stopping()`.
    """
    from shoal.training.acting import Actor, RandomAgent  # loads torch, which showing a replay does not need
    from shoal.training.evaluate import episodes_over

    if batch.metadata["autoreset_mode"] != AutoresetMode.DISABLED:
        raise ConfigError("Replays need a batch with autoreset_mode='disabled', which shows how an episode ends.")
    renderer = renderer_of(batch)
    of_agent = renderer.frames_of_agent

    def look(obs: Tree) -> list[Any]:
        if of_agent is None or not isinstance(actor, Actor) or isinstance(actor.agent, RandomAgent):
            return renderer.frames(batch, obs)
        return of_agent(batch, obs, actor.agent)

    renderer.begin()
    obs, info = batch.reset(seed=seed)
    actor.forget(np.ones(batch.num_envs, np.bool_))
    lanes: list[Lane] = [
        {"lane": lane, "frames": [frame], "actions": [], "rewards": [], "end": "cut"}
        for lane, frame in enumerate(look(obs))
    ]
    going = np.ones(batch.num_envs, np.bool_)
    for _ in range(max_steps):
        if stopping():
            raise Stopped
        action = actor(obs, info)
        obs, reward, terminated, _, info = batch.step(action)
        frames, actions = look(obs), np.asarray(action)
        for lane in np.flatnonzero(going):
            lanes[lane]["frames"].append(frames[lane])
            lanes[lane]["actions"].append(np.round(actions[lane], 4).tolist())
            lanes[lane]["rewards"].append(round(float(reward[lane]), 5))
        ended = episodes_over(info, batch.num_envs)
        for lane in np.flatnonzero(going & ended):
            lanes[lane]["end"] = "terminated" if terminated[lane] else "truncated"
        going &= ~ended
        if not going.any():
            break
        if ended.any():  # ended lanes must be reset to be stepped with the others; nobody looks at them any more
            obs, info = batch.reset(options={"reset_mask": ended})
            actor.forget(ended)
    return {
        "title": title,
        "renderer": renderer.name,
        "script": renderer.script,
        "fps": renderer.fps,
        "meta": renderer.meta(batch),
        "lanes": lanes,
    }


def save_replay(run: Path, step: int, replay: Replay) -> Path:
    """Write `replays/step_{step}.json` into a run folder."""
    path = run / "replays" / f"step_{step}.json"
    with explained(f"{path} could not be written", "Make room or choose another --runs-dir."):
        path.parent.mkdir(exist_ok=True)
        replace_file(path, json.dumps(replay, separators=(",", ":")))
    return path


def read_replay(path: Path) -> Replay:
    """What `save_replay` wrote; a `RunError` names what of it cannot be drawn."""
    values = read_table(path)
    shapes: dict[str, object] = {
        "title": str, "renderer": str, "script": str, "fps": float, "meta": dict[str, Any],
        "lanes": list[dict[str, Any]],
    }  # fmt: skip
    try:
        replay = {name: fit(values.get(name), hint, name) for name, hint in shapes.items()}
        for i, lane in enumerate(replay["lanes"]):
            for name in ("frames", "actions", "rewards"):
                fit(lane.get(name), list[Any], f"lanes[{i}].{name}")
            fit(lane["rewards"], list[float], f"lanes[{i}].rewards")
    except ConfigError as error:
        raise RunError(f"{path}: {error}") from error
    return cast(Replay, replay)


def replay_section(replays: list[Replay], note: str) -> Section:
    """A section with the player; the drawing code of the worlds comes along once."""
    drawings = {replay["renderer"]: replay["script"].strip() for replay in replays if replay["script"]}
    scripts = {name: f"Shoal.renderers[{json.dumps(name)}] = {script};" for name, script in drawings.items()}
    shown = [{key: value for key, value in replay.items() if key != "script"} for replay in replays]
    blocks = [{"kind": "replay", "size": "wide", "replays": shown}] if replays else []
    return Section("Replay", blocks, note, scripts)


def play_page(path: Path, replay: Replay) -> Path:
    """Write a page with nothing but the player."""
    note = "Click a lane to enlarge it; space plays, arrows step."
    with explained(f"{path} could not be written", "Check the permissions of the folder."):
        replace_file(path, render_page(replay["title"], "", "", [replay_section([replay], note)]))
    return path
