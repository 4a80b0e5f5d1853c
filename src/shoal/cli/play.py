"""`shoal play RUN`: watch a run's agent or a policy, as a page with the replay player or as a video."""

from __future__ import annotations

import inspect
import re
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from shoal.cli.options import Flags, filled
from shoal.cli.players import WhoPlays, is_world, open_player, world_among
from shoal.errors import ConfigError
from shoal.options import Flag, Values, hints_of

if TYPE_CHECKING:
    from shoal.training.acting import Player
    from shoal.world import World

PROG = "shoal play"


@dataclass(frozen=True)
class PlayCommand(WhoPlays):
    """Let a run's agent, or a policy of a world, play one episode in every lane, and show it."""

    vs: Annotated[str | None, Flag("NAME")] = None
    """In a world for two: who plays the other side, e.g. `shoal play connect4 --vs depth4`."""
    keyboard: bool | None = None
    """Play yourself, with keyboard or mouse, in a page on this machine; for worlds that can be played by hand. In
    worlds made for that, it is the default unless a run, a policy or a video is named."""
    video: Annotated[str | None, Flag("FILE")] = None
    """Write an .mp4 or .gif instead of a page."""
    num_envs: int = 4
    """Lanes, shown side by side."""
    max_steps: int = 1000
    """Steps after which an endless episode is cut."""


def main(argv: list[str]) -> int:
    """`shoal play RUN [OPTIONS]`."""
    world, flags = world_among(argv), Flags(PROG, inspect.getdoc(PlayCommand) or "")
    flags.add(PlayCommand)
    if world is not None:
        flags.add(world.options, world.name, "env")
        flags.epilog(_policies(world) if {"-h", "--help"} & {*argv} else "")
    tables = flags.read(argv)
    command, env = filled(PlayCommand, tables.get("", {}), PROG), tables.get("env", {})
    if _is_by_hand(world, command):
        return _play_by_hand(world, command)
    if command.vs is not None and world is not None and "opponent" in hints_of(world.options):
        command, env["opponent"] = replace(command, vs=None), command.vs
    return _show(command, env)


def _show(command: PlayCommand, env: Values) -> int:
    from shoal.report.pictures import draws_itself, show_observations
    from shoal.report.replay import play_page, record_replay
    from shoal.report.video import check_video_path, write_video
    from shoal.seeding import Seed, Stream
    from shoal.vector.rendering import renderer_of

    if command.video is not None:
        check_video_path(Path(command.video))
    player = open_player(command, command.num_envs, env, autoreset_mode="disabled")
    if command.vs is not None:
        player = _opposed(player, command.vs)
    elif draws_itself(player.batch.metadata):
        player.close()
        player = _open_drawing(command, env)
    with closing(player):
        if command.video is None:
            show_observations(player.batch)
        actor = player.act_in(player.batch)
        seed = Seed(command.seed, Stream.EVALUATION)
        replay = record_replay(player.batch, actor, seed, player.title, command.max_steps)
        if command.video is not None:
            print(write_video(Path(command.video), replay, renderer_of(player.batch)))
        else:
            name = re.sub(r"\W+", "-", f"{player.world.name}_{player.name}")
            page = Path(f"play_{name}.html") if player.run is None else player.run / "play.html"
            print(play_page(page, replay))
    for lane in replay["lanes"]:
        print(f"lane {lane['lane']}: return {sum(lane['rewards']):.2f} in {len(lane['rewards'])} steps ({lane['end']})")
    return 0


def _opposed(player: Player, opponent: str) -> Player:
    """The player in one seat of lanes in which `opponent` sits in the others."""
    from shoal.games.lab.tournament import SeatTournament
    from shoal.games.lanes.versus import VersusBatch

    lanes = player.make_lanes(player.batch.num_lanes, player.options, autoreset_mode="disabled")
    player.close()
    if lanes.num_seats < 2:
        lanes.close()
        raise ConfigError(f"{player.world.name} is not a world for two, so nobody can play --vs {opponent}.")
    tournament, batch = SeatTournament(player.world), VersusBatch(lanes)
    if player.batch.single_observation_space != batch.single_observation_space:
        batch.close()
        raise ConfigError(f"{player.title} does not see what one seat sees, so nobody can play --vs {opponent}.")
    tournament.seat(batch, tournament.find_entrant(opponent))
    return replace(player, batch=batch, name=f"{player.name} against {tournament.name_of(opponent)}")


def _policies(world: World) -> str:
    """The world's policies, for the help."""
    from shoal.training.lab import lab_of
    from shoal.world import options_of

    lab = lab_of(world)
    known = {} if lab.policies is None else {name: p.about for name, p in lab.policies(options_of(world, {})).items()}
    known["random"] = "any action that is allowed"
    width = max(map(len, known))
    lines = [f"  {name:<{width}}  {about}" for name, about in known.items()]
    return "\n".join([f"policies (--policy NAME; {lab.default_policy} if none is named):", *lines])


def _open_drawing(command: PlayCommand, env: Values) -> Player:
    """The player once more, with environments that draw: arrays for a video, small pictures for a page.

    A page without pictures is better than none, so there the player stays as it was if they cannot be drawn.
    """
    from shoal.report.pictures import drawing_options, render, show_pictures
    from shoal.vector.rendering import PICTURES

    drawing = open_player(command, command.num_envs, drawing_options(env), autoreset_mode="disabled")
    try:
        if command.video is None:
            show_pictures(drawing.batch)
        else:
            drawing.batch.reset(seed=0)
            render(drawing.batch)
            fps = drawing.batch.metadata.get("render_fps") or PICTURES.fps
            drawing.batch.metadata["renderer"] = replace(PICTURES, fps=fps)
    except ConfigError as error:
        drawing.close()
        if command.video is not None:
            raise
        print(f"{error} The page shows observations instead.")
        return open_player(command, command.num_envs, env, autoreset_mode="disabled")
    return drawing


def _is_by_hand(world: World | None, command: PlayCommand) -> bool:
    """Whether a person plays."""
    if command.keyboard is not None or world is None or not is_world(command.run):
        return bool(command.keyboard)
    from shoal.training.lab import lab_of

    return lab_of(world).by_hand and command.policy is None and command.video is None


def _play_by_hand(world: World | None, command: PlayCommand) -> int:
    from shoal.training.lab import lab_of

    serve = None if world is None else lab_of(world).serve
    if serve is None:
        raise ConfigError(f"{command.run} cannot be played by hand. Leave --keyboard out to watch it.")
    return serve(command.vs)
