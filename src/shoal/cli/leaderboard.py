"""`shoal eval RUN --leaderboard`: the nine cells of CAGE Challenge 2, beside the published scores."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from shoal.cli.options import parse
from shoal.errors import ConfigError

if TYPE_CHECKING:
    from shoal.worlds.cage2.leaderboard import Defender


@dataclass(frozen=True)
class LeaderboardCommand:
    """Score a defender of cage2 in all nine cells, with and without restoring Op_Server0 before any evidence."""

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The run folder; with --policy, `cage2`."""
    policy: Annotated[str | None, arg(metavar="NAME")] = None
    """Score a policy that comes with Shoal: `bundled`, or a baseline such as `react-restore`."""
    meander_run: Annotated[str | None, arg(metavar="RUN")] = None
    """Another run, which plays against Meander: one agent per red."""
    variant: str | None = None
    """cage2-2022 is what the public scores are of; the run's own if not given."""
    episodes: int = 1000
    """Episodes per cell."""
    seed: int = 0
    """Which episodes."""
    checkpoint: str = "latest"
    """latest, best, or step_N."""
    out: Annotated[str | None, arg(metavar="FILE")] = None
    """Write the cells to a JSON file."""


def main(argv: list[str]) -> int:
    """`shoal eval RUN --leaderboard [OPTIONS]`."""
    command = parse(LeaderboardCommand, argv, "shoal eval --leaderboard")

    from shoal.training.files import explained, replace_file
    from shoal.worlds.cage2.leaderboard import leaderboard_table, score

    defender, variant = _defender(command.run, command.policy, command.checkpoint, command.variant)
    by_red = {"bline": defender, "meander": defender, "sleep": defender}
    if command.meander_run is not None:
        by_red["meander"] = _defender(command.meander_run, None, command.checkpoint, variant)[0]
    played, honest = (
        score(by_red, variant, episodes=command.episodes, needs_evidence=needs_evidence, seed=command.seed)
        for needs_evidence in (False, True)
    )
    print(leaderboard_table(defender.name, variant, played, honest))
    if command.out is not None:
        cells = {"as_played": [asdict(cell) for cell in played], "after_evidence": [asdict(cell) for cell in honest]}
        with explained(f"{command.out} could not be written", "Choose another --out."):
            replace_file(Path(command.out), json.dumps({"variant": variant, **cells}, indent=1) + "\n")
    return 0


def _defender(run: str, policy: str | None, checkpoint: str, variant: str | None) -> tuple[Defender, str]:
    """Who is scored, and on which variant."""
    from shoal.worlds.cage2.leaderboard import Defender

    if policy is not None:
        from shoal.worlds.cage2.policies import defender_of

        if run != "cage2":
            raise ConfigError(
                f"The leaderboard is one of cage2, not of {run!r}: shoal eval cage2 --policy {policy} ..."
            )
        return defender_of(policy, variant or "cage2-2022"), variant or "cage2-2022"

    from shoal.training.acting import Actor
    from shoal.training.opening import open_run

    opened = open_run(run, 1, checkpoint)
    opened.close()
    if opened.config.world != "cage2":
        raise ConfigError(f"{run} is a run of {opened.config.world}; the leaderboard is one of cage2.")
    env = {key: value for key, value in opened.config.env.items() if key not in ("variant", "red", "length")}
    variant = variant or opened.config.env.get("variant", "cage2")
    return Defender(opened.path.name, env, lambda batch: Actor(opened.agent, batch)), variant
