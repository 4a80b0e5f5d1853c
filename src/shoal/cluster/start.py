"""Start a Ray of our own on this machine, quietly, or connect to one that is running."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from shoal.cluster.probe import speaks_grpc
from shoal.errors import ConfigError, RunError, missing_extra

LOOPBACK = "127.0.0.1"
CONNECT_S = 5.0
"""Patience with an address at which there may be no cluster."""
_MEGABYTE = 2**20


def import_ray(purpose: str) -> ModuleType:
    """The `ray` module, or `MissingExtra`."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # must be there before Ray starts anything
    try:
        import ray
    except ImportError:
        raise missing_extra("ray", "ray", purpose) from None
    return ray


@contextmanager
def use_ray(address: str | None, num_cpus: int, purpose: str, fragment_bytes: int = 0) -> Iterator[ModuleType]:
    """Ray for the length of a `with`: the running one, the cluster at `address`, or one of our own without one."""
    ray = import_ray(purpose)
    if ray.is_initialized():
        yield ray
    elif address is None:
        with start_local(num_cpus, fragment_bytes):
            yield ray
    else:
        connect(address)
        try:
            yield ray
        finally:
            ray.shutdown()


@contextmanager
def start_local(num_cpus: int, fragment_bytes: int = 0) -> Iterator[None]:
    """A Ray on loopback with `num_cpus` logical CPUs (they may exceed the cores), gone after the `with`."""
    ray = import_ray("Running on Ray")
    short = "/tmp" if os.path.isdir("/tmp") else None  # names of sockets must be
    folder = tempfile.mkdtemp(prefix="shoal-ray-", dir=short)
    options = {
        "address": "local",
        "num_cpus": num_cpus,
        "include_dashboard": False,
        "object_store_memory": max(100 * _MEGABYTE, 3 * num_cpus * fragment_bytes),
        "log_to_driver": False,
        "logging_level": "ERROR",
        "_node_ip_address": LOOPBACK,
        "_temp_dir": folder,
    }
    try:
        _start(ray, options)
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _start(ray: ModuleType, options: dict[str, object]) -> None:
    """`ray.init`, once more if Ray's own processes did not come up within the half minute that it gives them."""
    try:
        ray.init(**options)
    except Exception as error:  # Ray raises nothing more special
        if "timed out during startup" not in str(error):
            raise
        ray.shutdown()
        try:
            ray.init(**options)
        except Exception as again:
            raise RunError(f"Ray did not start, the machine may be too busy: {str(again).splitlines()[0]}") from again


def ray_address() -> str:
    """HOST:PORT of the Ray that this process is connected to."""
    return import_ray("Running on Ray").get_runtime_context().gcs_address


def connect(address: str) -> None:
    """Connect to the cluster at "HOST:PORT" or "auto"; `ConfigError` soon if there is none."""
    ray = import_ray("Running on Ray")
    if address != "auto":
        _check_server(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError) as error:
        raise ConfigError(f"No Ray cluster answers at {address!r}: {str(error).splitlines()[0]} {_REMEDY}") from error


def _check_server(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"--ray-address {address!r} is not an address. Use HOST:PORT, or auto.")
    try:
        is_ray = os.environ.get("RAY_USE_TLS", "0") != "0" or speaks_grpc(host, int(port), CONNECT_S)
    except OSError as error:
        raise ConfigError(f"Nobody answers at {address!r} ({error.strerror or error}). {_REMEDY}") from None
    if not is_ray:
        raise ConfigError(f"What answers at {address!r} is not a Ray cluster. {_REMEDY}")


_REMEDY = "Start a cluster with `ray start --head`, or leave --ray-address out."
