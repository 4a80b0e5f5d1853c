"""Figures of the house: how much code there is, and how much of it somebody must open to follow one run.

    python tools/house.py [--files] [CHECKOUT]        (or `make house`)

Read from the source of CHECKOUT (this one, if none is named):

- lines: of all `*.py` below `src`, blank ones and comments included.
- functions of more than 8 parameters: `self` and `cls`, `*args` and `**kwargs` not counted. The scalar code of kernels
  is left out, because compiled code over arrays has no objects to put its arguments into. It is every function that is
  decorated with something that compiles (a decorator whose name contains jit, inline, intrinsic, overload, inner or
  entry) or nested in such a one, every function of a subclass of `Kernel`, and every function of the package that those
  call, however deep.
- `Any` in signatures: parameters (`*args` and `**kwargs` too) and returns whose annotation mentions `Any`.
- longest function: from its `def` to its last line.

Traced on real runs (`walk.py` says how), and counted in files of which a function ran:

- one PPO iteration, default path: a turn of the training loop on CartPole, from one `collect` to the next; what is
  logged and shown is part of it. "kernel": how many of these files are seen only in the compiled code of the
  environment's step.
- definition: of the same iteration without the agent's fast path, the files of the agents' package and of `collect`
  in which arrays or tensors were handled; a check of settings or a schedule of two numbers defines no algorithm.
- from argv to the first `collect`: with an empty cache for compiled code, as after installing.
- one SAC iteration of hockey self-play: as for PPO; here the kernel's files (the physics of the rink) come on top.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

MANY_PARAMETERS = 8
COMPILING = ("jit", "inline", "intrinsic", "overload", "inner", "entry")
FAST_PATH_OFF = ("--algo.no-fast", "--algo.no-compiled")  # the first that the command line knows
CARTPOLE = ("train", "cartpole")
SELF_PLAY = ("train", "hockey", "--algo", "sac", "--preset", "self-play", "--algo.warmup", "64")
Function = ast.FunctionDef | ast.AsyncFunctionDef


# ---------------------------------------------------------------------- read from the source


@dataclass
class Source:
    """One file, parsed."""

    name: str  # relative to the package
    text: str
    tree: ast.Module
    functions: dict[str, Function] = field(default_factory=dict)  # at the top of the module
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)  # name here -> module and name there

    @property
    def module(self) -> str:
        """Dotted name below the package, e.g. "vector.batch"."""
        return ".".join(Path(self.name).with_suffix("").parts).removesuffix("__init__").rstrip(".")


def read_package(root: Path) -> dict[str, Source]:
    """All files of the package by dotted module name."""
    sources = {}
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        source = Source(path.relative_to(root).as_posix(), text, ast.parse(text))
        for node in source.tree.body:
            if isinstance(node, Function):
                source.functions[node.name] = node
            elif isinstance(node, ast.ClassDef):
                source.classes[node.name] = node
        for each in ast.walk(source.tree):
            if isinstance(each, ast.ImportFrom) and each.module and each.module.split(".")[0] == root.name:
                module = each.module.removeprefix(root.name).lstrip(".")
                source.imported |= {alias.asname or alias.name: (module, alias.name) for alias in each.names}
        sources[source.module] = source
    return sources


def functions_of(sources: Iterable[Source]) -> Iterator[tuple[Source, Function]]:
    """Every function, methods and nested ones included."""
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, Function):
                yield source, node


def parameters(function: Function) -> list[ast.arg]:
    """Named parameters, `self` included."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def count_any(function: Function) -> int:
    """Annotations of the signature that mention `Any`."""
    rest = [parameter for parameter in (function.args.vararg, function.args.kwarg) if parameter is not None]
    annotations = [parameter.annotation for parameter in [*parameters(function), *rest]] + [function.returns]
    return sum(annotation is not None and "Any" in ast.unparse(annotation) for annotation in annotations)


def length(function: Function) -> int:
    """Lines from the `def` to the end."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def has_many_parameters(function: Function) -> bool:
    """Whether it has more than 8 besides `self`."""
    names = [parameter.arg for parameter in parameters(function)]
    return len(names) - (names[:1] in (["self"], ["cls"])) > MANY_PARAMETERS


class ScalarCode:
    """The functions that Numba compiles; see the top of this file for the rule."""

    def __init__(self, sources: dict[str, Source]) -> None:
        self._sources = sources
        self.functions: set[Function] = set()
        for _, function in functions_of(sources.values()):
            if any(word in ast.unparse(d) for d in function.decorator_list for word in COMPILING):
                self.functions |= {node for node in ast.walk(function) if isinstance(node, Function)}
        for source in sources.values():
            for name, definition in source.classes.items():
                if self._is_kernel(source, name):
                    self._add_all(source, definition)

    def _is_kernel(self, source: Source, name: str) -> bool:
        """Whether the class `name`, as it is known in `source`, derives from one called `Kernel`."""
        if name not in source.classes:
            module, name = source.imported.get(name, ("", ""))
            if module not in self._sources or name not in self._sources[module].classes:
                return False
            source = self._sources[module]
        bases = [base.id for base in source.classes[name].bases if isinstance(base, ast.Name)]
        return any(base == "Kernel" or self._is_kernel(source, base) for base in bases if base != name)

    def _add_all(self, source: Source, node: ast.AST) -> None:
        """The functions inside `node`, and the functions of the package that it names."""
        self.functions |= {inner for inner in ast.walk(node) if isinstance(inner, Function)}
        for name in {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}:
            home, known_as = source, name
            if name in source.imported:
                module, known_as = source.imported[name]
                home = self._sources.get(module, source)
            function = home.functions.get(known_as)
            if function is not None and function not in self.functions:
                self._add_all(home, function)


# ---------------------------------------------------------------------- traced on runs


def trace(root: Path, mode: str, argv: Iterable[str], folder: Path, fresh: bool = False) -> dict[str, list[str]] | None:
    """What `walk.py` records of the command line; None if the command line refuses the arguments.

    `fresh` is without compiled code of earlier runs.
    """
    out = folder / "walk.json"
    out.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(root.parent), "OMP_NUM_THREADS": "1"}
    if fresh:
        environment["SHOAL_CACHE_DIR"] = str(folder / "cache")
    command = [sys.executable, str(Path(__file__).with_name("walk.py")), str(root), mode, str(out), *argv]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode == 2 and not out.exists():
        return None
    if done.returncode:
        raise SystemExit(f"`{' '.join(argv)}` did not come to the end of its walk:\n{done.stdout}{done.stderr}")
    return json.loads(out.read_text())


def trace_definition(root: Path, folder: Path) -> list[str]:
    """Files that define PPO: what runs without the fast path."""
    for flag in FAST_PATH_OFF:
        walk = trace(root, "iteration", (*CARTPOLE, flag), folder)
        if walk is not None:
            package = walk["agent"][0].split("/")[0] + "/"
            return [name for name in walk["with_arrays"] if name.startswith(package) or name in walk["collect"]]
    raise SystemExit(f"The command line knows none of {', '.join(FAST_PATH_OFF)}.")


# ---------------------------------------------------------------------- the table


def figures_of_source(root: Path) -> list[tuple[str, str, str]]:
    """Rows (what, figure, remark) that need no run."""
    sources = read_package(root)
    functions = list(functions_of(sources.values()))
    scalar = ScalarCode(sources).functions
    wide = [(s, f) for s, f in functions if has_many_parameters(f) and f not in scalar]
    longest_source, longest = max(functions, key=lambda pair: length(pair[1]))
    lines = sum(path.read_text().count("\n") for path in root.parent.rglob("*.py"))
    return [
        ("lines in src", f"{lines:,}", f"{len(sources)} files"),
        ("functions of more than 8 parameters", str(len(wide)), "\n".join(f"{s.name} {f.name}" for s, f in wide)),
        ("Any in signatures", str(sum(count_any(function) for _, function in functions)), ""),
        ("longest function", str(length(longest)), f"{longest.name} in {longest_source.name}"),
    ]


def figures_of_walks(root: Path) -> list[tuple[str, str, str]]:
    """Rows (what, figure, files) of the traced runs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ppo = trace(root, "iteration", CARTPOLE, folder)
        definition = trace_definition(root, folder)
        start = trace(root, "start", CARTPOLE, folder, fresh=True)
        sac = trace(root, "iteration", SELF_PLAY, folder)
    if ppo is None or start is None or sac is None:
        raise SystemExit("The command line refuses the arguments of a walk; they are at the top of this file.")
    lines = sum((root / file).read_text().count("\n") for file in definition)
    return [
        (
            "files of one PPO iteration, default path",
            str(len(ppo["files"] + ppo["kernel"])),
            f"kernel {len(ppo['kernel'])}\n" + "\n".join(ppo["files"] + ppo["kernel"]),
        ),
        ("files of one PPO iteration, definition", str(len(definition)), f"{lines:,} lines\n" + "\n".join(definition)),
        ("files from argv to the first collect", str(len(start["files"])), "\n" + "\n".join(start["files"])),
        (
            "files of one SAC iteration of hockey self-play",
            str(len(sac["files"])),
            f"and kernel {len(sac['kernel'])}\n" + "\n".join(sac["files"] + [f"(kernel) {f}" for f in sac["kernel"]]),
        ),
    ]


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--files", action="store_true", help="also list the files and functions that were counted")
    options = parser.parse_args(argv)
    root = options.checkout.resolve() / "src" / "shoal"
    source_rows = figures_of_source(root)
    rows = [source_rows[0], *figures_of_walks(root), *source_rows[1:]]
    width = max(len(what) for what, _, _ in rows)
    for what, figure, remark in rows:
        first, *rest = remark.split("\n")
        if what.startswith("functions"):
            first, rest = "", remark.split("\n")
        print(f"{what:<{width}}  {figure:>7}  {first}".rstrip())
        if options.files:
            print("".join(f"    {line}\n" for line in rest if line), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
