"""`shoal play RUN`: watch a run's agent, as a page with the replay player or as a video."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from shoal.cli.options import parse


@dataclass(frozen=True)
class PlayCommand:
    """Let a run's agent play one episode in every lane, and show it."""

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The run folder."""
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
    max_steps: int = 1000
    """Steps after which an endless episode is cut."""


def main(argv: list[str]) -> int:
    """`shoal play RUN [OPTIONS]`."""
    command = parse(PlayCommand, argv, "shoal play")

    from shoal.report.replay import play_page, record_replay
    from shoal.report.video import check_video_path, write_video
    from shoal.training.acting import Actor
    from shoal.training.evaluate import EVAL_SEEDS
    from shoal.training.opening import open_run
    from shoal.vector.rendering import renderer_of

    if command.video is not None:
        check_video_path(Path(command.video))
    with closing(open_run(command.run, command.num_envs, command.checkpoint, autoreset_mode="disabled")) as opened:
        actor = Actor(opened.agent, opened.batch, deterministic=command.deterministic)
        title = f"{opened.config.world}, step {opened.step:,}"
        replay = record_replay(opened.batch, actor, EVAL_SEEDS + command.seed, title, command.max_steps)
        if command.video is not None:
            print(write_video(Path(command.video), replay, renderer_of(opened.batch)))
        else:
            print(play_page(opened.path / "play.html", replay))
    for lane in replay["lanes"]:
        print(f"lane {lane['lane']}: return {sum(lane['rewards']):.2f} in {len(lane['rewards'])} steps ({lane['end']})")
    return 0
