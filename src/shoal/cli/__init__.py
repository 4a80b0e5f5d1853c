"""The `shoal` command: a table of verbs, and the verbs of every world. Each general verb is one module here with
`main(argv) -> exit code`.

Names and summaries are all that `shoal --help` needs, so it answers without importing numba, torch or gymnasium.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping

from shoal.garbage import collect_rarely
from shoal.platform import silence

VERBS = {
    "envs": ("shoal.cli.envs", "list the worlds that can be named here"),
    "new": ("shoal.cli.new", "write a kernel, an environment or a world of your own to start from"),
    "check": ("shoal.cli.check", "test any environment against the contract and say in sentences what it breaks"),
    "port": ("shoal.cli.port", "compile a Gymnasium class as it is, prove it equal, or say what stands in the way"),
    "train": ("shoal.cli.train", "train an agent on a world or on your own environment"),
    "eval": ("shoal.cli.evaluate", "measure how good a run's agent is, with an interval"),
    "compare": ("shoal.cli.compare", "say which of several runs or experiments is better, and how sure that is"),
    "tune": ("shoal.cli.tune", "search for the settings that learn best, with Optuna"),
    "play": ("shoal.cli.play", "watch a run's agent: a page or a video"),
    "tournament": ("shoal.cli.tournament", "let runs and bots of a world for two play a round robin, with ratings"),
    "exploit": ("shoal.cli.exploit", "train a new agent against a frozen player and say how beatable that player is"),
    "report": ("shoal.cli.report", "write a run's report.html"),
    "export": ("shoal.cli.export", "write a run's policy as a file for other programs: ONNX, torch, C, NumPy"),
    "rllib": ("shoal.cli.rllib", "train with RLlib's PPO on Shoal's lanes"),
    "cache": ("shoal.cli.cache", "show the folder of compiled code, or clear it"),
    "bench": ("shoal.cli.bench", "measure Shoal and the peers installed here, interleaved in one run"),
}


def usage() -> str:
    """The text of `shoal --help`."""
    from shoal.registry import worlds
    from shoal.world import World

    title = "Shoal: reinforcement learning on batches of environments."
    general = table_of({verb: summary for verb, (_, summary) in VERBS.items()})
    own = {
        f"{name} {verb}": command.summary
        for name, world in worlds().items()
        if isinstance(world, World)
        for verb, command in world.commands.items()
    }
    closing = (
        "`shoal VERB --help` explains one verb.  `shoal --version` prints the version.\n"
        "`--import MODULE`, with any verb, imports a module first, e.g. one that registers Gymnasium ids."
    )
    return "\n".join([title, "", "Verbs:", general, "", "Verbs of single worlds:", table_of(own), "", closing])


def table_of(rows: Mapping[str, str], prog: str = "shoal") -> str:
    """Commands and what they do, side by side."""
    width = max(map(len, rows), default=0)
    return "\n".join(f"  {prog} {name:<{width}}  {summary}" for name, summary in rows.items())


def main(argv: list[str] | None = None) -> int:
    """Entry point of the command line; returns the exit code."""
    collect_rarely()
    try:
        code = _main(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has read enough
        silence(sys.stdout)
        return 141  # as of a program that SIGPIPE ends
    return code


def _main(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if argv[0] in ("-V", "--version"):
        from importlib.metadata import version

        print(f"shoal {version('shoal')}")
        return 0

    from shoal.errors import ShoalError

    try:
        verb, *rest = argv
        return _run(verb, _import_first(rest))
    except ShoalError as error:
        print(f"shoal: {_readable(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("shoal: interrupted", file=sys.stderr)
        return 130


def _import_first(argv: list[str]) -> list[str]:
    """Import what `--import MODULE` names, with any verb and as often as given; the other words."""
    from shoal.errors import ConfigError
    from shoal.vector.lanes.gym_ids import register_from

    kept: list[str] = []
    words = iter(argv)
    for word in words:
        flag, equals, module = word.partition("=")
        if flag != "--import":
            kept.append(word)
            continue
        if not equals:
            module = next(words, "")
        if not module or module.startswith("-"):
            raise ConfigError("--import needs the name of a module, e.g. --import my_envs.")
        register_from(module)
    return kept


def _readable(message: str, length: int = 2_000) -> str:
    """A sentence without the middle of an endless name or value that it quotes."""
    return message if len(message) <= length else f"{message[: length // 2]} … {message[-length // 2 :]}"


def _run(verb: str, argv: list[str]) -> int:
    from shoal.errors import unknown_name
    from shoal.registry import find_world, world_names

    if verb in VERBS:
        return importlib.import_module(VERBS[verb][0]).main(argv) or 0
    world = find_world(verb)
    if world is None:
        raise unknown_name("verb", verb, [*VERBS, *world_names()], "`shoal --help`")
    if not argv or argv[0] in ("-h", "--help"):
        print(f"{world.name}: {world.summary}\n")
        print(table_of({name: command.summary for name, command in world.commands.items()}, f"shoal {world.name}"))
        print(f"\n`shoal train {world.name} --help` shows its options.")
        return 0
    if argv[0] not in world.commands:
        raise unknown_name("verb", argv[0], world.commands, f"`shoal {world.name} --help`", f"of {world.name}")
    return run_command(world.commands[argv[0]].verb, argv[1:], f"shoal {world.name} {argv[0]}")


def run_command(path: str, argv: list[str], prog: str) -> int:
    """Read the options of the `Verb` at `path` ("module:NAME") from `argv`, and run it."""
    from shoal.cli.options import Flags, filled
    from shoal.registry import load

    verb = load(path)
    flags = Flags(prog, inspect.getdoc(verb.options) or "")
    flags.add(verb.options)
    return verb.run(filled(verb.options, flags.read(argv).get("", {}), prog))
