"""Suite "atari": PPO with the Nature network on ALE's games, learning included, against CleanRL's manner and SB3.

Everyone has 8 lanes of 128 steps, 4 epochs of 4 minibatches and the same network. Shoal, the script on ALE and
Stable-Baselines3 (through the bridge) step ALE's own vector environment; EnvPool has one of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from shoal.bench.learning import curves, measure_learning
from shoal.bench.report import make_console, print_result, write_result
from shoal.bench.rounds import Result
from shoal.bench.train import notes_on_absent
from shoal.bench.trainers import Contender, Work
from shoal.errors import ConfigError, unknown_name
from shoal.training.lab import Verb

LIMIT = "bare convolutions"
CONTENDERS = (
    Contender("shoal", "shoal_loop", "ale_py"),
    Contender(LIMIT, "convolutions", "ale_py"),
    Contender("cleanrl style, ale", "torch_ppo:ale", "ale_py"),
    Contender("cleanrl style, envpool", "torch_ppo:envpool", "envpool"),
    Contender("sb3", "sb3_agents:images", "stable_baselines3"),
)
WORK = Work(8, 128, epochs=4, minibatches=4, lr=2.5e-4, clip=0.1)
FRAMES = 4  # of the game in one step


@dataclass(frozen=True)
class AtariArgs:
    """Measure PPO on Atari games through ALE's vector environment, learning included, interleaved."""

    games: tuple[str, ...] = ("Pong", "Breakout")
    """As ALE calls them."""
    rounds: int = 5
    """Interleaved rounds, of which the median is reported."""
    only: tuple[str, ...] = ()
    """Measure Shoal and these only, e.g. "sb3" "bare convolutions"."""
    frames: int = 0
    """Also train everyone for so many frames, four for a step, and show how the return grows."""
    seed: int = 0
    """Of those trainings."""
    out: Path | None = None
    """Write the rows here as JSON."""

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.frames < 0:
            raise ConfigError("--rounds must be at least 1, --frames not below 0.")
        for name in self.only:
            if name not in (names := [each.name for each in CONTENDERS]):
                raise unknown_name("contender", name, names, "`shoal bench atari --help`")


def run(args: AtariArgs) -> int:
    """The command."""
    console = make_console()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    chosen = [each for each in CONTENDERS if not args.only or each.name in ("shoal", *args.only)]
    result, curve = Result([], notes_on_absent(chosen), {}), list[dict[str, object]]()
    for game in args.games:
        work = replace(WORK, world=f"ALE/{game}-v5", seed=args.seed)
        result.rows.extend(measure_learning("atari", work, chosen, args.rounds, say))
        if args.frames:
            learners = [contender for contender in chosen if contender.name != LIMIT]
            curve += curves(work, learners, args.frames // FRAMES, say)
        write_result(result, args.out, curves=curve)
    print_result(result, console)
    return 0


SUITE = Verb(AtariArgs, run)
