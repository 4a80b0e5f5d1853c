"""`shoal play RUN`: watch a run's agent or a policy, as a page with the replay player or as a video."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from shoal.cli.options import options_note, parse, split_world_options, world_options
from shoal.errors import ConfigError

if TYPE_CHECKING:
    from shoal.training.opening import Player
    from shoal.vector.batch import Batch


@dataclass(frozen=True)
class PlayCommand:
    """Let a run's agent, or a policy of a world, play one episode in every lane, and show it."""

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The run folder; or a world, to watch one of its policies or the random one."""
    policy: Annotated[str | None, arg(metavar="NAME")] = None
    """Which policy of the world plays, e.g. `shoal play cartpole --policy random`."""
    vs: Annotated[str | None, arg(metavar="NAME")] = None
    """In a world for two: who plays the other side, e.g. `shoal play hockey --vs strong`."""
    keyboard: bool = False
    """Play yourself, in a page on this machine; for worlds that can be played by hand."""
    video: Annotated[str | None, arg(metavar="FILE")] = None
    """Write an .mp4 or .gif instead of a page."""
    num_envs: int = 4
    """Lanes, shown side by side."""
    seed: int = 0
    """Which episodes."""
    deterministic: bool = True
    """Take the likeliest action instead of drawing one."""
    checkpoint: str = "latest"
    """latest, best, or step_N."""
    device: str | None = None
    """Where the networks live; as in training if not given."""
    max_steps: int = 1000
    """Steps after which an endless episode is cut."""


def main(argv: list[str]) -> int:
    """`shoal play RUN [OPTIONS]`."""
    from shoal.cli.players import open_player, world_among

    world = world_among(argv)
    known = {} if world is None else world_options(world, PlayCommand)
    argv, env = split_world_options(argv, known)
    command = parse(PlayCommand, argv, "shoal play", note=options_note(world or "", known))
    if command.keyboard:
        return _play_by_hand(world or command.run, command.vs)
    if command.vs is not None:
        if "opponent" not in known:
            raise ConfigError(f"{world or command.run} is no world for two, so nobody can play --vs {command.vs}.")
        env["opponent"] = command.vs

    from shoal.report.replay import play_page, record_replay
    from shoal.report.video import check_video_path, write_video
    from shoal.training.evaluate import EVAL_SEEDS
    from shoal.vector.rendering import renderer_of

    if command.video is not None:
        check_video_path(Path(command.video))
    player = open_player(command, command.num_envs, env, autoreset_mode="disabled")
    if command.video is not None and _draws_itself(player.batch):
        player.close()
        player = _open_drawing(command, player)
    with closing(player):
        actor = player.act_in(player.batch)
        replay = record_replay(player.batch, actor, EVAL_SEEDS + command.seed, player.title, command.max_steps)
        if command.video is not None:
            print(write_video(Path(command.video), replay, renderer_of(player.batch)))
        else:
            name = re.sub(r"\W+", "-", f"{player.world}_{player.name}")
            page = Path(f"play_{name}.html") if player.run is None else player.run / "play.html"
            print(play_page(page, replay))
    for lane in replay["lanes"]:
        print(f"lane {lane['lane']}: return {sum(lane['rewards']):.2f} in {len(lane['rewards'])} steps ({lane['end']})")
    return 0


def _draws_itself(batch: Batch) -> bool:
    """Whether the lanes are environments that know no renderer of ours, but draw pictures of their own."""
    return "renderer" not in batch.metadata and "rgb_array" in batch.metadata.get("render_modes", ())


def _open_drawing(command: PlayCommand, player: Player) -> Player:
    """`player` once more, in this process, with environments that draw."""
    from shoal.cli.players import open_player
    from shoal.vector.rendering import PICTURES

    kwargs = {**player.env.get("env_kwargs", {}), "render_mode": "rgb_array"}
    env = {**player.env, "env_kwargs": kwargs, "backend": "serial"}
    drawing = open_player(command, command.num_envs, env, autoreset_mode="disabled")
    fps = drawing.batch.metadata.get("render_fps", PICTURES.fps)
    drawing.batch.metadata["renderer"] = replace(PICTURES, fps=fps)
    return drawing


def _play_by_hand(world: str, vs: str | None) -> int:
    from shoal.training.beside import world_part

    serve = world_part(world, "keyboard", "serve")
    if serve is None:
        raise ConfigError(f"{world} cannot be played by hand. Leave --keyboard out to watch it.")
    return serve(vs)
