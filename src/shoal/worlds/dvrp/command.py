"""The original command line, which counts in episodes and epochs, put into environment steps."""

from __future__ import annotations

from shoal.errors import ConfigError

_MINIBATCH = 480  # transitions that a gradient step should see, about
_COUNTED = ("--episodes", "--save-interval")


def translate(argv: list[str]) -> list[str]:
    """Arguments of `shoal train dvrp` with this world's own flags replaced by those of every world.

    `--episodes` and `--save-interval` (epochs) become steps, `--save-dir` is `--runs-dir`, `--eval` is what happens
    anyway, and a rollout is one episode of `--customers` requests in every lane.
    """
    given, rest = _split(argv)
    lanes, customers = _number(given, "--num-envs", 64), _number(given, "--customers", 30)
    epoch = lanes * customers
    flags: dict[str, int] = {}
    if "--customers" in given or "--num-envs" in given:
        flags |= {"--algo.num-steps": customers, "--algo.minibatches": _parts(epoch)}
    if "--episodes" in given:
        flags["--total-steps"] = max(1, _number(given, "--episodes", 1) // lanes) * epoch
    if "--save-interval" in given:
        flags["--checkpoint-every"] = _number(given, "--save-interval", 1) * epoch
    added = [word for flag, value in flags.items() if flag not in given for word in (flag, str(value))]
    return [*rest, *added]


def _split(argv: list[str]) -> tuple[dict[str, str], list[str]]:
    """Values by flag, and the arguments without the flags that only this world knows."""
    given, rest = {}, []
    words = [part for word in argv for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for i, word in enumerate(words):
        flag = word.replace("_", "-") if word.startswith("--") else None
        before = words[i - 1].replace("_", "-") if i else ""
        if flag is not None and i + 1 < len(words):
            given[flag] = words[i + 1]
        if flag == "--save-dir":
            rest.append("--runs-dir")
        elif flag not in (*_COUNTED, "--eval") and before not in _COUNTED:
            rest.append(word)
    return given, rest


def _parts(epoch: int) -> int:
    """The number of equal minibatches whose size is closest to what is wanted."""
    divisors = (parts for parts in range(1, epoch + 1) if epoch % parts == 0)
    return min(divisors, key=lambda parts: abs(epoch / parts - _MINIBATCH))


def _number(given: dict[str, str], flag: str, default: int) -> int:
    value = given.get(flag, str(default))
    if not value.isdigit() or int(value) < 1:
        raise ConfigError(f"{flag} {value} cannot be: it takes a whole number of at least 1.")
    return int(value)
