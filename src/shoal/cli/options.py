"""What the verbs share: parsing arguments into a dataclass, with one sentence for a flag that does not exist."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import itertools
import json
import re
import typing
from typing import Any, TypeVar

from shoal.errors import ConfigError, unknown_name

T = TypeVar("T")
OF_ENVIRONMENTS = {"backend": "auto", "num_workers": "auto", "env_kwargs": "{}"}
"""Options of `shoal.make` for any `gymnasium.Env`."""


def parse(command: type[T], argv: list[str], prog: str, default: T | None = None, note: str = "") -> T:
    """The dataclass `command` filled from `argv`; tyro reads it and prints `--help`, with `note`."""
    import tyro

    known = [*flags(command), "--help"]
    for word in argv:
        if word.startswith("-") and not _is_number(word) and spelled(word) not in (*known, "-h"):
            raise unknown_name("option", spelled(word), known, f"`{prog} --help`")
    description = f"{inspect.getdoc(command)}{note}"
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return typing.cast(T, tyro.cli(command, prog=prog, args=argv, default=default, description=description))
    except SystemExit as ended:
        if ended.code in (0, None):  # it was --help
            raise
        raise ConfigError(_sentence(complaint.getvalue(), prog)) from None


def _sentence(box: str, prog: str) -> str:
    """What tyro says in a box of several lines, as one sentence."""
    lines = [line.strip("│| ") for line in box.splitlines()[1:]]  # without the title

    def is_rule(line: str) -> bool:
        return not set(line) - set("─-╭╮╰╯+ ")

    told = list(itertools.takewhile(lambda line: not is_rule(line), itertools.dropwhile(is_rule, lines)))
    wrong = re.match(r"Error parsing (\S+): .*: '(.*)'$", told[0])
    if wrong:
        flag, value = wrong.groups()
        kind = re.search(rf"{re.escape(flag)} (\S+)", " ".join(lines[1:]))
        expected = {"INT": "a whole number", "FLOAT": "a number"}.get(kind.group(1) if kind else "", "another value")
        return f"{flag} {value} cannot be: it takes {expected}. `{prog} --help` explains it."
    if told[0].startswith("Missing from"):
        return f"`{prog}` needs {told[1]}. `{prog} --help` explains it."
    return f"{' '.join(told).rstrip('.')}. `{prog} --help` explains it."


def spelled(word: str) -> str:
    """One flag as the help spells it: `--num_envs=8` is `--num-envs`."""
    return word.split("=", 1)[0].replace("_", "-")


def flags(command: type, prefix: str = "") -> list[str]:
    """Every flag of a dataclass, those of nested ones behind a dot, `--no-x` for booleans included."""
    found = []
    hints = typing.get_type_hints(command, include_extras=True)
    for field in dataclasses.fields(command):
        kind, name = hints[field.name], field.name.replace("_", "-")
        marks = getattr(kind, "__metadata__", ())
        name = next((mark.name for mark in marks if getattr(mark, "name", None) is not None), name)
        plain = kind.__origin__ if marks else kind
        nested = [one for one in (plain, *typing.get_args(plain)) if dataclasses.is_dataclass(one)]
        if nested:  # one of several, where the value decides which
            found += [
                flag for one in nested for flag in flags(typing.cast(type, one), f"{prefix}{name}." if name else prefix)
            ]
        else:
            found += [f"--{prefix}{name}"] + ([f"--{prefix}no-{name}"] if plain is bool else [])
    return found


def take(argv: list[str], flag: str) -> str | None:
    """The value given for `flag` in `argv` (the last one counts), or None."""
    value = None
    for i, word in enumerate(argv):
        if spelled(word) == flag:
            if "=" in word:
                value = word.split("=", 1)[1]
            elif i + 1 < len(argv):
                value = argv[i + 1]
            else:
                raise ConfigError(f"{flag} needs a value.")
    return value


def split_world_options(argv: list[str], known: typing.Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Take `--name value` out of `argv` for every name in `known`, which has their defaults.

    Values are JSON where they can be, else text; where the default is False or True, `--name` alone means true.
    """
    rest, options = [], {}
    words = list(argv)
    while words:
        word = words.pop(0)
        name = spelled(word)[2:].replace("-", "_") if word.startswith("--") else ""
        if name not in known:
            rest.append(word)
            continue
        if "=" in word:
            value = word.split("=", 1)[1]
        elif isinstance(known[name], bool) and (not words or words[0].lower() not in ("true", "false")):
            value = "true"
        elif words:
            value = words.pop(0)
        else:
            raise ConfigError(f"{word} needs a value.")
        try:
            options[name] = json.loads(value.lower() if isinstance(known[name], bool) else value)
        except ValueError:
            options[name] = value
    return rest, options


def world_options(world: str, command: type) -> dict[str, Any]:
    """Names and defaults of what the world itself can be given, e.g. parameters of a kernel; flags of `command` win."""
    from shoal.registry import find_world, resolve
    from shoal.training.beside import keyword_options
    from shoal.vector.kernel import Kernel

    entry = resolve(world)
    if isinstance(entry, type) and issubclass(entry, Kernel):
        options = {name: value for name, value in entry.params.items() if not hasattr(value, "shape")}
    elif find_world(world) is not None:
        options = keyword_options(entry)
    else:
        options = dict(OF_ENVIRONMENTS)
    return not_taken(options, command)


def not_taken(options: dict[str, Any], command: type) -> dict[str, Any]:
    """The options whose flags `command` does not have itself."""
    taken = flags(command)
    return {name: value for name, value in options.items() if f"--{name.replace('_', '-')}" not in taken}


def options_note(world: str, options: typing.Mapping[str, Any]) -> str:
    """What `--help` says of them."""
    if not options:
        return ""
    return f"\n\nOptions of {world}: " + ", ".join(f"--{k.replace('_', '-')} {v}" for k, v in options.items())


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
