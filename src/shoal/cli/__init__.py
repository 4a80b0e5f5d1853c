"""The `shoal` command: a table of verbs. Each verb is one module here with `main(argv) -> exit code`.

The table is all that `shoal --help` needs, so it answers without importing numba, torch or gymnasium.
"""

from __future__ import annotations

import importlib
import sys

VERBS = {
    "envs": ("shoal.cli.envs", "list the worlds that come with Shoal"),
    "check": ("shoal.cli.check", "test any environment against the contract and say in sentences what it breaks"),
    "train": ("shoal.cli.train", "train an agent on a world or on your own environment"),
    "eval": ("shoal.cli.evaluate", "measure how good a run's agent is, with an interval"),
    "play": ("shoal.cli.play", "watch a run's agent: a page or a video"),
    "tournament": ("shoal.cli.tournament", "let runs and bots of a world for two play a round robin, with ratings"),
    "search": ("shoal.cli.search", "search over the orders of repair of cage2, training each"),
    "report": ("shoal.cli.report", "write a run's report.html"),
    "oracle-train": ("shoal.cli.oracle_train", "train the neural routing oracle of dvrp"),
    "kg": ("shoal.cli.kg", "prove queries over a knowledge graph, mine rules, train embeddings"),
    "rllib": ("shoal.cli.rllib", "train with RLlib's PPO on Shoal's lanes"),
    "bench": ("shoal.cli.bench", "measure Shoal and the peers installed here, interleaved in one run"),
}


def usage() -> str:
    """The text of `shoal --help`."""
    width = max(map(len, VERBS))
    lines = [f"  shoal {verb:<{width}}  {help_line}" for verb, (_, help_line) in VERBS.items()]
    title = "Shoal: reinforcement learning on batches of environments."
    closing = "`shoal VERB --help` explains one verb.  `shoal --version` prints the version."
    return "\n".join([title, "", "Verbs:", *lines, "", closing])


def main(argv: list[str] | None = None) -> int:
    """Entry point of the command line; returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if argv[0] in ("-V", "--version"):
        from importlib.metadata import version

        print(f"shoal {version('shoal')}")
        return 0

    from shoal.errors import ShoalError, unknown_name

    try:
        if argv[0] not in VERBS:
            raise unknown_name("verb", argv[0], VERBS, "`shoal --help`")
        return importlib.import_module(VERBS[argv[0]][0]).main(argv[1:]) or 0
    except ShoalError as error:
        print(f"shoal: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("shoal: interrupted", file=sys.stderr)
        return 130
