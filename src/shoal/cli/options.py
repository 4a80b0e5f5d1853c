"""What the verbs share: flags that fall out of dataclasses, and one sentence for every way to get one wrong.

The words of a command line are sorted by flag and checked by `shoal.options`, as the values of a file are. What was not
given is not in the result, so that presets and files can fill it in.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from shoal.errors import ConfigError, unknown_name
from shoal.options import (
    OpenOptions,
    Range,
    Values,
    build,
    default_of,
    describe,
    docs_of,
    fit,
    flag_of,
    hints_of,
    read_text,
)

T = TypeVar("T")


@dataclass(frozen=True)
class _Target:
    """Where the words behind a flag go."""

    table: str
    name: str
    hint: object
    flag: str


class Flags:
    """The flags of a command, gathered from dataclasses; `read` sorts a command line by them."""

    def __init__(self, prog: str, about: str) -> None:
        self.prog = prog
        self._parser = _Parser(prog=prog, description=about, formatter_class=_Help, allow_abbrev=False, add_help=False)
        self._parser.add_argument("-h", "--help", action="help", help="Show this and exit.")
        self._targets: dict[str, _Target] = {}
        self._positional: list[tuple[_Target, bool]] = []  # and whether it takes several words

    def add(
        self,
        options: type,
        title: str | None = None,
        table: str = "",
        prefix: str = "",
        shown: object = None,
    ) -> None:
        """A flag for every field of `options`, under `title` in the help; its values go into `table` of the result.

        Without a title they stand beside `--help`.

        `shown` is an instance whose values the help shows as defaults in place of the dataclass's own. A name that is
        taken is reached as `--{table}.{name}`.
        """
        if options is OpenOptions or not dataclasses.is_dataclass(options):
            return
        group = self._parser if title is None else self._parser.add_argument_group(title)
        hints, docs = hints_of(options), docs_of(options)
        own = {f.name: default_of(f) for f in dataclasses.fields(options)}
        for name, hint in hints.items():
            flag, text = flag_of(hint), docs.get(name, "")
            if flag.hidden or hint is object:
                continue
            words = f"--{prefix}{name}".replace("_", "-")
            if words in self._targets and table:
                words = f"--{table}.{name}".replace("_", "-")
            dest = f"{table}.{name}"
            if flag.positional:
                metavar = flag.metavar or name.upper()
                self._positional.append((_Target(table, name, hint, metavar), "tuple" in str(hint)))
                shown_as = metavar if own[name] is dataclasses.MISSING else f"[{metavar}]"
                self._parser.words.append((shown_as, f"{metavar}: {text}"))
                continue
            default = getattr(shown, name, own[name])
            if default is not dataclasses.MISSING and default not in (None, "", (), {}):
                text += f" (default: {_shown(default)})"
            self._targets[words] = self._targets[dest] = _Target(table, name, hint, words)
            self._add_flag(group, [words, *flag.aliases], dest, hint, text.replace("%", "%%"), flag.metavar)

    def _add_flag(
        self,
        group: argparse._ActionsContainer,
        words: list[str],
        dest: str,
        hint: object,
        text: str,
        metavar: str | None,
    ) -> None:
        spellings = [*words, *(word.replace("-", "_").replace("__", "--", 1) for word in words)]
        spellings = list(dict.fromkeys(spellings))
        # where one value will do in place of a list, one word is read
        is_bool, is_list = _is_switch(hint), describe(hint).startswith("a list")
        shape: dict[str, Any] = {"nargs": "?", "action": _Switch} if is_bool else {"nargs": "+"} if is_list else {}
        group.add_argument(
            *spellings, dest=dest, default=argparse.SUPPRESS, metavar=metavar or _metavar(hint), help=text, **shape
        )
        if is_bool:
            off = [_off(word) for word in spellings]
            group.add_argument(
                *off, dest=dest, action="store_const", const="false", default=argparse.SUPPRESS, help=argparse.SUPPRESS
            )

    def epilog(self, text: str) -> None:
        """What stands below the flags in the help."""
        self._parser.epilog = text

    def read(self, argv: list[str]) -> dict[str, Values]:
        """What was given, by table and name; those of no table under ""."""
        try:
            space, rest = self._parser.parse_known_args(argv)
        except argparse.ArgumentError as error:
            flag = (error.argument_name or "").split("/")[0]
            raise ConfigError(f"{flag} needs a value. `{self.prog} --help` explains it.") from None
        given = vars(space)
        words = self._without_flags(rest) + given.pop(_BEHIND_SWITCHES, [])
        tables: dict[str, Values] = {}
        for target, several in self._positional:
            mine, words = (words, []) if several else (words[:1], words[1:])
            if mine:
                value = self._value(mine, target) if several else self._value(mine[0], target)
                tables.setdefault(target.table, {})[target.name] = value
        if words:
            raise ConfigError(f"`{self.prog}` has no use for {words[0]!r}. `{self.prog} --help` says what it takes.")
        for dest, word in given.items():
            target = self._targets[dest]
            tables.setdefault(target.table, {})[target.name] = self._value(word, target)
        return tables

    def _value(self, words: Any, target: _Target) -> Any:
        name = target.flag
        try:
            if not isinstance(words, list):
                return read_text(words, target.hint, name)
            if len(words) == 1:  # perhaps JSON, or one value in place of a list
                with suppress(ConfigError):
                    return read_text(words[0], target.hint, name)
            return fit([_number_or_word(word) for word in words], target.hint, name)
        except ConfigError as error:
            text = words if isinstance(words, str) else " ".join(words)
            takes = describe(target.hint)
            meant = str(error).partition("Did you mean ")[2]
            hint = f" Did you mean {meant}" if meant else ""
            raise ConfigError(
                f"{name} {text} is not valid: it takes {takes}.{hint} `{self.prog} --help` explains it."
            ) from None

    def _without_flags(self, rest: list[str]) -> list[str]:
        """What no flag took, among which there must be no flag."""
        for word in rest:
            if word.startswith("-") and not _is_number(word):
                known = [words for words in self._targets if words.startswith("--")]
                flag = word.split("=", 1)[0].replace("_", "-")
                raise unknown_name("option", flag, [*known, "--help"], f"`{self.prog} --help`")
        return rest


def parse(command: type[T], argv: list[str], prog: str) -> T:
    """The dataclass `command` filled from `argv`."""
    flags = Flags(prog, inspect.getdoc(command) or "")
    flags.add(command)
    return filled(command, flags.read(argv).get("", {}), prog)


def filled(command: type[T], values: Values, prog: str) -> T:
    """`command` from what was given; one sentence if something must be given and was not."""
    for f in dataclasses.fields(command):  # type: ignore[arg-type]
        if default_of(f) is dataclasses.MISSING and not values.get(f.name):
            metavar = flag_of(hints_of(command)[f.name]).metavar or f.name.upper()
            raise ConfigError(f"`{prog}` needs {metavar}. `{prog} --help` explains it.")
    return build(command, values, "", f"`{prog} --help`")


def peek(argv: list[str], *flags: str) -> dict[str, str]:
    """Values of some flags, ahead of reading the whole: they decide which other flags there are."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    for flag in flags:
        parser.add_argument(flag, dest=flag, default=argparse.SUPPRESS, nargs="?")
    given = vars(parser.parse_known_args(argv)[0])
    return {flag: value for flag, value in given.items() if value is not None}


def is_on(argv: list[str], switch: str) -> bool:
    """Whether a switch is given, ahead of reading the whole."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument(switch, dest="on", action=_Switch, nargs="?", default="false")
    return parser.parse_known_args(argv)[0].on.lower() == "true"


class _Parser(argparse.ArgumentParser):
    """Raises in place of printing a usage and ending the process."""

    def __init__(self, **options: Any) -> None:
        super().__init__(exit_on_error=False, **options)
        self.words: list[tuple[str, str]] = []  # what is given without a flag: in the usage, and explained

    def error(self, message: str) -> Any:
        raise ConfigError(f"{message[:1].upper()}{message[1:]}. `{self.prog} --help` explains it.")

    def format_usage(self) -> str:
        return f"usage: {' '.join([self.prog, *(name for name, _ in self.words)])} [OPTIONS]\n"

    def format_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        for _, meaning in self.words:
            formatter.add_text(meaning)
        for group in self._action_groups:
            if group._group_actions:
                formatter.start_section(group.title)
                formatter.add_arguments(group._group_actions)
                formatter.end_section()
        formatter.add_text(self.epilog)
        return f"{self.format_usage()}\n{formatter.format_help()}"


class _Switch(argparse.Action):
    """`--flag`, `--flag true` or `--flag false`; another word behind it is somebody else's."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        is_mine = values is None or values.lower() in (
            "true",
            "false",
            *(["auto"] if "auto" in str(self.metavar) else []),
        )
        setattr(namespace, self.dest, values if is_mine and values is not None else "true")
        if not is_mine:
            setattr(namespace, _BEHIND_SWITCHES, [*getattr(namespace, _BEHIND_SWITCHES, []), values])


_BEHIND_SWITCHES = "behind switches"


class _Help(argparse.RawDescriptionHelpFormatter):
    """Shows every flag by its first spelling, its meaning beside it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        first = action.option_strings[0]
        if isinstance(action, _Switch):
            return f"{first}, {_off(first)}"
        if action.nargs == 0:
            return action.option_strings[-1]
        return f"{action.option_strings[0]} {action.metavar}"


def _is_switch(hint: object) -> bool:
    """Whether a flag may stand alone: true or false, and perhaps words besides."""
    return describe(hint).startswith(describe(bool)) and "list" not in describe(hint)


def _off(word: str) -> str:
    """`--green` is switched off by `--no-green`, `--algo.fast` by `--algo.no-fast`."""
    table, dot, name = word.removeprefix("--").rpartition(".")
    return f"--{table}{dot}no-{name}"


def _metavar(hint: object) -> str:
    words = describe(hint)
    if words.startswith("one of "):
        return words.removeprefix("one of ").replace("'", "").replace(", ", "|").replace(" or ", "|")
    if describe(Range) in words:
        return "INT|LOW..HIGH" if words.startswith("a whole") else "FLOAT|LOW..HIGH"
    kinds = {"a whole number": "INT", "a number": "FLOAT", "text": "TEXT", "a path": "PATH", "a table": "JSON"}
    return kinds.get(words.removesuffix(", or none"), "LIST" if words.startswith("a list") else "VALUE")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _number_or_word(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        return word


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
