"""Every error a user can meet. Each message says what happened, with the numbers, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class ShoalError(Exception):
    """Base of all errors that Shoal raises on purpose."""


class ConfigError(ShoalError, ValueError):
    """An argument or a configuration field cannot be used as given."""


class ActionError(ShoalError, ValueError):
    """Actions of the wrong number, shape, type or range."""


class StateError(ShoalError, RuntimeError):
    """A call at the wrong moment: before reset, after close, twice."""


class LaneFault(ShoalError, RuntimeError):
    """A lane crashed, hung or returned something impossible. `lane` says which one, where that is known."""

    def __init__(self, message: str, lane: int | None = None) -> None:
        super().__init__(message)
        self.lane = lane


class KernelError(ShoalError, RuntimeError):
    """A mistake in a user's kernel; the message names their function, file and line."""


class KernelWarning(UserWarning):
    """Something in a user's kernel that is allowed but looks like a mistake."""


class RunError(ShoalError, RuntimeError):
    """A run folder or a checkpoint that cannot be written, read or continued."""


class UnknownName(ShoalError, LookupError):
    """A name that nothing is registered under; the message proposes the nearest."""


class MissingExtra(ShoalError, ImportError):
    """An optional dependency is not installed; the message is the command that installs it."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one of `known` that `name` was probably meant to be, or None."""
    folded = {candidate.lower(): candidate for candidate in known}
    name = name[:100]  # longer than any name, and comparing takes time
    matches = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    return folded[matches[0]] if matches else None


SYNONYMS = {
    "n_envs": "num_envs", "n_steps": "num_steps", "timesteps": "total_steps", "total_timesteps": "total_steps",
    "learning_rate": "lr", "ent_coef": "entropy", "vf_coef": "value_weight", "clip_range": "clip", "n_epochs": "epochs",
    "config_path": "config", "config_file": "config", "base_output_dir": "runs_dir", "output_dir": "runs_dir",
    "log_dir": "runs_dir", "save_dir": "runs_dir", "eval_freq": "eval_every", "eval_freq_steps": "eval_every",
    "eval_frequency": "eval_every", "n_eval_episodes": "eval_episodes", "eval_num_games": "eval_episodes",
    "save_freq": "checkpoint_every", "checkpoint_freq": "checkpoint_every", "checkpoint_frequency": "checkpoint_every",
    "checkpoint_path": "init", "buffer_size": "replay_capacity", "learning_starts": "warmup", "warmup_steps": "warmup",
    "target_update_freq": "target_every", "n_workers": "num_workers", "alignment_lambda": "alignment_weight",
    "compliance_threshold": "stop_compliance", "min_episodes_per_env": "min_episodes",
    "max_train_episodes_per_env": "max_episodes", "update_steps": "num_steps", "k_epochs": "epochs", "eps_clip": "clip",
}  # fmt: skip
"""What other libraries, and the systems that the worlds come from, call our settings."""


def unknown_name(kind: str, name: str, known: Iterable[str], listed_by: str, where: str = "") -> UnknownName:
    """`UnknownName` that proposes the nearest of `known` and says which command lists them all.

    `where` ("of connect4", "in config.json") follows the name.
    """
    known, plain = sorted(known), name.lstrip("-").replace("-", "_").rpartition(".")[2].lower()
    meant = _called(SYNONYMS.get(plain, plain), known) or (None if plain in SYNONYMS else nearest(name, known))
    hint = f" Did you mean {meant!r}?" if meant else ""
    shown = name if len(name) <= 100 else name[:100] + "…"
    unknown = f"No {kind} {shown!r}{where and ' ' + where}"
    return UnknownName(f"{unknown}.{hint} {listed_by} lists all {len(known)}." if known else f"{unknown}: it has none.")


def _called(wanted: str, known: list[str]) -> str | None:
    """The one of `known`, flags and dotted names included, that is called so."""
    ends = [each for each in known if each.lstrip("-").replace("-", "_").rpartition(".")[2] == wanted]
    return min(ends, key=len, default=None)


@contextmanager
def naming(source: str) -> Iterator[None]:
    """An error that is met inside begins with the file that is read, unless it names it anyway."""
    try:
        yield
    except ShoalError as error:
        if source and Path(source).name not in str(error):
            error.args = (f"{source}: {error}",)
        raise


def missing_extra(package: str, extra: str, purpose: str) -> MissingExtra:
    """`MissingExtra` naming the `pip install` that adds `package`."""
    return MissingExtra(f"{purpose} needs {package}, which is not installed: pip install 'shoal[{extra}]'.")
