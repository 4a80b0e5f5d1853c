"""`shoal port ENV`: what compiling a `gymnasium.Env` as it is would do, and what stands in the way."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from shoal.cli.options import parse
from shoal.options import Flag

if TYPE_CHECKING:
    from shoal.port.ported import Ported


@dataclass(frozen=True)
class PortArgs:
    """Compile a gymnasium.Env as it is and prove it equal; say what came of it, or what stands in the way."""

    env: Annotated[str, Flag("ENV", positional=True)]
    """A Gymnasium id ("CartPole-v1") or "package.module:Class"."""
    write: Annotated[Path | None, Flag("FILE")] = None
    """Write the kernel as source, the start of one of your own."""
    tolerance: float = 0.0
    """Relative difference of floats that is accepted, beyond the last digits that depend on the machine."""
    steps: int | None = None
    """Compare over at least this many steps of all lanes together; by default 6,400, or what 12 seconds allow."""
    json: bool = False
    """Print a JSON object instead of sentences."""


def main(argv: list[str]) -> int:
    """Port, print, and return 1 if something stands in the way."""
    args = parse(PortArgs, argv, "shoal port")
    from shoal.port.refusal import PortError, Refused

    try:
        ported = _port(args)
    except PortError as error:
        if not args.json:
            print(f"{args.env} cannot be compiled as it is.\n  {error}")
        else:
            obstacle = asdict(error.obstacle) if isinstance(error, Refused) else None
            print(json.dumps({"env": args.env, "compiled": False, "reason": str(error), "obstacle": obstacle}))
        return 1
    if args.write is not None:
        _write(ported, args.write)
    if args.json:
        print(json.dumps({"env": args.env, "compiled": True, **asdict(ported), "path": str(ported.path)}))
    else:
        print("\n".join(page(args.env, ported)))
    return 0


def _port(args: PortArgs) -> Ported:
    from shoal.errors import ConfigError
    from shoal.port.ported import port
    from shoal.registry import as_world
    from shoal.vector.kernel import Kernel
    from shoal.vector.lanes.making import EnvMaker

    if args.steps is not None and args.steps < 1:
        raise ConfigError(f"--steps is {args.steps}. It must be at least 1.")
    world = as_world(args.env)
    source = world.source
    if source is None or (isinstance(source, type) and issubclass(source, Kernel)):
        raise ConfigError(f"{args.env} is made of compiled lanes already. `shoal port` takes a gymnasium.Env.")
    return port(EnvMaker(source), args.tolerance, not args.json, args.steps)  # type: ignore[arg-type]


def _write(ported: Ported, path: Path) -> None:
    """The module as it is used, with its tables, under another name."""
    text = ported.path.read_text().replace(ported.path.with_suffix(".npz").name, path.with_suffix(".npz").name)
    path.write_text(text)
    tables = ported.path.with_suffix(".npz")
    if tables.exists():
        path.with_suffix(".npz").write_bytes(tables.read_bytes())


def page(env: str, ported: Ported) -> list[str]:
    """A page of sentences."""
    proof = ported.proof
    last = (
        f"the largest difference is {proof.ulps:.0f} units in the last place, of {proof.where}"
        if proof.where
        else "bit for bit"
    )
    lines = [
        f"{env} can be compiled as it is: shoal.make({env!r}, 4096, compiled=True).",
        f"  Proven over {proof.steps:,} steps of {proof.episodes:,} episodes, every value and attribute: {last}.",
        f"  Speed: {ported.factor:,.0f} times the steps per CPU-second of the class in a loop, with 1,024 lanes.",
        f"  Watching, translating, compiling and proving took {ported.seconds:.1f} s of CPU, once.",
        "",
        "Attributes:",
    ]
    width = max(map(len, ported.attributes), default=0)
    lines += [f"  {name:<{width}}  {words[:100]}" for name, words in ported.attributes.items()]
    lines += ["", "Functions reached:", *[f"  {name}" for name in ported.reached]]
    if ported.inexact:
        lines += ["", f"The last digit depends on the machine behind: {', '.join(ported.inexact)}."]
    if ported.notes:
        lines += ["", "Left out:", *[f"  {note}" for note in ported.notes]]
    return lines
