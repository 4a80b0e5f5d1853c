"""docs/settings.md from the dataclasses that are the settings.

    python -m tools.settings_page            write it
    python -m tools.settings_page --check    exit with 1 if it is not up to date

A test does the second.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from shoal.agents.config import DDDQNConfig, OffPolicyConfig, PPOConfig, SACConfig
from shoal.options import default_of, describe, docs_of, flag_of, hints_of
from shoal.registry import EnvironmentOptions
from shoal.training.config import TrainConfig

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
OPENING = """# Settings

Everything that `shoal train` and `shoal.train` can be told, with its default. A flag is the name with dashes:
`num_envs` is `--num-envs`, `lr` of the agent is `--algo.lr`; a switch that is on is switched off by `--no-NAME`. In
Python settings are keyword arguments, those of the agent a table: `shoal.train("cartpole", num_envs=64, algo={"name":
"ppo", "lr": 1e-3})`. A file holds the same names (`--config FILE`, JSON or TOML), nested as `config.json` of every
run is.

Later sources win: the defaults below, then the world's preset for the agent, then a file, then what was given. A
world has options of its own beside these: `shoal train WORLD --help` lists them all, with the defaults that hold for
it.

This page is written by `python -m tools.settings_page` from the dataclasses themselves, and a test keeps it true.
"""
SECTIONS: tuple[tuple[str, str, type, type | None], ...] = (
    ("The run", "`shoal.training.config.TrainConfig`.", TrainConfig, None),
    (
        "Lanes of a Gymnasium environment",
        "What any id, class or factory takes (see [environments.md](environments.md)); in `config.json` under `env`.",
        EnvironmentOptions,
        None,
    ),
    ("PPO", "`--algo ppo`, flags `--algo.NAME`; in `config.json` under `algo`.", PPOConfig, None),
    (
        "SAC and DDDQN",
        "What both have, flags `--algo.NAME`. See [offpolicy.md](offpolicy.md).",
        OffPolicyConfig,
        None,
    ),
    ("SAC alone", "`--algo sac`.", SACConfig, OffPolicyConfig),
    ("DDDQN alone", "`--algo dddqn`.", DDDQNConfig, OffPolicyConfig),
)


def page() -> str:
    """The whole page."""
    parts = [OPENING]
    for title, about, options, base in SECTIONS:
        parts.append(f"## {title}\n\n{about}\n\n{table(options, base)}")
    return "\n".join(parts)


def table(options: type, base: type | None) -> str:
    """Name, default, what it takes and what it means of every field, without those of `base`."""
    inherited = {} if base is None else hints_of(base)
    docs, hints = docs_of(options), hints_of(options)
    defaults = {f.name: default_of(f) for f in dataclasses.fields(options)}
    rows = ["| name | default | takes | meaning |", "|---|---|---|---|"]
    for name, hint in hints.items():
        if name in inherited or flag_of(hint).hidden:
            continue
        words = "".join(f", or {word}" for word in flag_of(hint).words)
        cells = (f"`{name}`", shown(defaults[name]), describe(hint) + words, docs.get(name, ""))
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def shown(default: object) -> str:
    """A default as one would write it."""
    if default is None or default is dataclasses.MISSING:
        return "none" if default is None else ""
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, tuple):
        return " ".join(map(str, default)) or "none"
    return "none" if default == {} else f"{default:,}" if isinstance(default, int) else str(default)


def main() -> int:
    """Write the page, or compare it."""
    if "--check" in sys.argv[1:]:
        return int(PAGE.read_text() != page())
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
