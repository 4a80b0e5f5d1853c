"""Whether something in a run folder was written by this user: signatures with a key of their own, as Jupyter has them.

Two things in a run folder can make Shoal run code: the snapshots of foreign environments, which are pickles, and a
world or a network named "package.module:Name", which is imported and called. Both are used only if they carry an HMAC
with the key of this user, or if the caller says that the run is to be trusted.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from shoal.errors import RunError
from shoal.platform import move_if_absent
from shoal.training.files import read_table, replace_file

CONFIG, CONFIG_SIGNATURE = "config.json", "config.hmac"
_KEY_BYTES = 32
Purpose = Literal["config", "environments"]


def sign(content: bytes, purpose: Purpose) -> str | None:
    """The signature of `content`; None where no key can be kept, and then nothing is recognised later."""
    key = _key(make=True)
    return None if key is None else _hmac(key, content, purpose)


def is_signed(content: bytes, purpose: Purpose, signature: object) -> bool:
    """Whether `signature` is what `sign` returned for this user."""
    key = _key(make=False)
    return (
        key is not None
        and isinstance(signature, str)
        and hmac.compare_digest(_hmac(key, content, purpose).encode(), signature.strip().encode())
    )


def read_config(run: Path, trust: bool = False) -> dict[str, Any]:
    """What config.json of a run holds. One that names code to import must be this user's own, or be trusted."""
    values = read_table(run / CONFIG)
    algo = values.get("algo")
    named = (values.get("world"), algo.get("network") if isinstance(algo, dict) else None, values.get("network"))
    code = next((name for name in named if ":" in str(name)), None)
    if not trust and code is not None and not has_own_config(run):
        raise RunError(
            f"{run / CONFIG} names {code!r}, code that would be imported and run, and this user did not "
            f"sign it. Pass --trust (trust=True) if you know where the run comes from."
        )
    return values


def write_config(folder: Path, values: Mapping[str, Any]) -> None:
    """Write config.json of a run, an experiment or a search, and sign it."""
    content = json.dumps(values, indent=2) + "\n"
    replace_file(folder / CONFIG, content)
    signature = sign(content.encode(), "config")
    if signature is not None:
        replace_file(folder / CONFIG_SIGNATURE, signature + "\n")


def has_own_config(run: Path) -> bool:
    """Whether config.json of a run is as this user's Shoal wrote it."""
    try:
        content, signature = (run / CONFIG).read_bytes(), (run / CONFIG_SIGNATURE).read_text()
    except (OSError, UnicodeDecodeError):
        return False
    return is_signed(content, "config", signature)


def key_path() -> Path:
    """Where the key is: `shoal/signing_key` in the user's folder of configurations."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "shoal" / "signing_key"


def _key(make: bool) -> bytes | None:
    """The user's key; made when it is first needed. None if there is none, or a file that is not one."""
    path = key_path()
    with contextlib.suppress(OSError):
        if make and not path.exists():
            _make_key(path)
        key = path.read_bytes()
        return key if len(key) == _KEY_BYTES else None
    return None


def _make_key(path: Path) -> None:
    """Write a new key that only its owner can read; of two processes at the same moment, the first one's stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
        move_if_absent(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _hmac(key: bytes, content: bytes, purpose: Purpose) -> str:
    return hmac.new(key, f"shoal {purpose}\n".encode() + content, hashlib.sha256).hexdigest()
