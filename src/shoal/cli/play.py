"""`shoal play RUN`: watch a run's agent or a world's own policy, as a page with the replay player or as a video."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from shoal.cli.evaluate import describe, open_player, split_policy_options
from shoal.cli.options import parse


@dataclass(frozen=True)
class PlayCommand:
    """Let a run's agent play one episode in every lane, and show it."""

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The run folder; with --policy, a world and its options."""
    policy: Annotated[str | None, arg(metavar="NAME")] = None
    """Watch a policy that the world brings instead of a run, e.g. `shoal play cage2 --policy bundled`."""
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
    argv, options = split_policy_options(argv)
    command = parse(PlayCommand, argv, "shoal play")

    from shoal.report.replay import play_page, record_replay
    from shoal.report.video import check_video_path, write_video
    from shoal.training.evaluate import EVAL_SEEDS
    from shoal.vector.rendering import renderer_of

    if command.video is not None:
        check_video_path(Path(command.video))
    batch, actor, about = open_player(command, command.num_envs, options, autoreset_mode="disabled")
    with closing(batch):
        replay = record_replay(batch, actor, EVAL_SEEDS + command.seed, describe(about), command.max_steps)
        if command.video is not None:
            print(write_video(Path(command.video), replay, renderer_of(batch)))
        else:
            page = Path(about["run"]) / "play.html" if "run" in about else Path(f"play_{about['world']}.html")
            print(play_page(page, replay))
    for lane in replay["lanes"]:
        print(f"lane {lane['lane']}: return {sum(lane['rewards']):.2f} in {len(lane['rewards'])} steps ({lane['end']})")
    return 0
