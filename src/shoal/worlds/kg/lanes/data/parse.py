"""Text formats of knowledge graphs. A line that does not parse is an error that names its file and line.

Atoms are `pred(arg1,arg2)`: the predicate is everything before the first parenthesis, so `co-occurs_with` and
`/film/film/genre` are names like any other. In rules every argument is a variable, in data every argument a constant,
whatever their case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from shoal.errors import ConfigError

Atom = tuple[str, str, str]  # predicate, first argument, second argument
T = TypeVar("T")

_ATOM = re.compile(r"([^(]*)\(([^,]*),([^,]*)\)\s*\.?")
_BODY_ATOM = re.compile(r"([^(),]*)\(([^(),]*),([^(),]*)\)\s*(,|$)\s*")

LARGEST = 2**31 - 1
"""Depths and other numbers of files are kept in 32 bits."""


class Rule(NamedTuple):
    """A Horn rule. Variables are numbered from 0 by first appearance, head first."""

    name: str
    score: float
    head: tuple[str, int, int]
    body: tuple[tuple[str, int, int], ...]

    @property
    def num_variables(self) -> int:
        return 1 + max(term for atom in (self.head, *self.body) for term in atom[1:])

    def __str__(self) -> str:
        atoms = [f"{p}({_variable(x)},{_variable(y)})" for p, x, y in (*self.body, self.head)]
        return f"{', '.join(atoms[:-1])} -> {atoms[-1]}"


def _variable(number: int) -> str:
    return "XYZUVW"[number] if number < 6 else f"X{number}"


class ParseError(ValueError):
    """What is wrong with one line; whoever reads the file adds file and line."""


def parse_atom(text: str) -> Atom:
    """`pred(a,b)` with or without a final dot."""
    match = _ATOM.fullmatch(text.strip())
    if match is None:
        raise ParseError(f"{_shorten(text)} is not of the form pred(arg1,arg2)")
    predicate, first, second = match[1].strip(), _clean(match[2]), _clean(match[3])
    if not (predicate and first and second):
        raise ParseError(f"{_shorten(text)} has an empty predicate or argument")
    return predicate, first, second


def parse_rule(text: str) -> Rule:
    """`name:score:atom, atom, ... -> atom`; only the first two colons separate."""
    parts = text.strip().split(":", 2)
    if len(parts) < 3:
        raise ParseError(f"{_shorten(text)} is not of the form name:score:body -> head")
    name, score_text, clause = parts
    score = _number(score_text, "the score ")
    body_text, arrow, head_text = clause.rpartition("->")
    if not arrow:
        raise ParseError(f"{_shorten(text)} has no '->' between body and head")
    numbers: dict[str, int] = {}
    head = _with_variables(parse_atom(head_text), numbers)
    body = tuple(_with_variables(atom, numbers) for atom in _parse_body(body_text))
    return Rule(name.strip(), score, head, body)


def _parse_body(text: str) -> list[Atom]:
    rest, atoms = text.strip(), []
    while rest:
        match = _BODY_ATOM.match(rest)
        if match is None:
            raise ParseError(f"the body {_shorten(text)} is not a list of atoms separated by commas")
        atoms.append(parse_atom(rest[: match.start(4)]))
        if match[4] and match.end() == len(rest):
            raise ParseError(f"the body {_shorten(text)} ends with a comma")
        rest = rest[match.end() :]
    if not atoms:
        raise ParseError("the rule has no body")
    return atoms


def _with_variables(atom: Atom, numbers: dict[str, int]) -> tuple[str, int, int]:
    predicate, *arguments = atom
    first, second = (numbers.setdefault(name, len(numbers)) for name in arguments)
    return predicate, first, second


def _clean(argument: str) -> str:
    return argument.strip().strip("'\"")


def _shorten(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers and texts of all lines that are neither blank nor comments (`%`)."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"There is no file {path}.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}).") from None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line and not line.startswith("%"):
            yield number, line


def _parsed(path: Path, parse: Callable[[str], T]) -> list[T]:
    """`parse` of every line; what is wrong with one is told with file and line."""
    parsed = []
    for number, line in read_lines(path):
        try:
            parsed.append(parse(line))
        except ParseError as error:
            raise ConfigError(f"{path}:{number}: {error}.") from None
    return parsed


def read_atoms(path: Path) -> list[Atom]:
    """All atoms of a data file."""
    return _parsed(path, parse_atom)


def read_rules(path: Path) -> list[Rule]:
    """All rules of a rule file, in order."""
    return _parsed(path, parse_rule)


def read_annotated(path: Path, num_values: int) -> list[tuple[Atom, list[float]]]:
    """Lines `pred(a,b) value ...` with exactly `num_values` numbers: depth annotations and soft facts."""

    def parse(line: str) -> tuple[Atom, list[float]]:
        text, *values = line.rsplit(maxsplit=num_values)
        if len(values) != num_values:
            raise ParseError(f"{_shorten(line)} does not have {num_values} number(s) after the atom")
        return parse_atom(text), [_number(value) for value in values]

    return _parsed(path, parse)


def _number(text: str, what: str = "") -> float:
    try:
        number = float(text)
    except ValueError:
        raise ParseError(f"{what}{text!r} is not a number") from None
    if not abs(number) <= LARGEST:
        raise ParseError(f"{what}{text} is not a number up to {LARGEST}")
    return number


class Domains(NamedTuple):
    """Entity types: members of every domain, and the domains that predicates declare for head and tail."""

    members: dict[str, list[str]]
    of_predicate: dict[str, tuple[str, str]]


def read_domains(path: Path) -> Domains:
    """`domain e1 e2 ...` and `pred:headDomain:tailDomain` lines."""
    domains = Domains({}, {})

    def declare(line: str) -> None:
        words = line.split()
        if len(words) == 1 and line.count(":") >= 2:
            predicate, head, tail = line.rsplit(":", 2)
            domains.of_predicate[predicate] = (head, tail)
        elif len(words) > 1:
            domains.members.setdefault(words[0], []).extend(words[1:])
        else:
            raise ParseError(f"{_shorten(line)} is neither 'domain e1 e2 ...' nor 'pred:headDomain:tailDomain'")

    _parsed(path, declare)
    for predicate, sides in domains.of_predicate.items():
        for name in sides:
            if name not in domains.members:
                raise ConfigError(f"{path}: the predicate {predicate!r} has the domain {name!r}, which is not defined.")
    return domains
