"""What a worker process runs: its group of lanes, a word at a time, until its parent says so or is gone."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import StateError
from shoal.platform import HANGUP, PORTABLE
from shoal.vector.lanes.group import LaneGroup, Report
from shoal.vector.lanes.making import EnvMaker, Traits, probe
from shoal.vector.workers.memory import Block, Shared, receive_block
from shoal.vector.workers.protocol import (
    CALL,
    DONE,
    FAILED,
    REPORT,
    STEP_ALL,
    Channel,
    Connection,
    Hangup,
    linger,
    make_channel,
)

_FLUSH_AFTER_S = 0.0005  # finished lanes are told about together, but not kept longer than this


@dataclass(frozen=True)
class Assignment:
    """All that a worker is told at its start."""

    worker: int
    num_workers: int
    num_envs: int
    first_lane: int
    stop_lane: int
    autoreset_mode: AutoresetMode
    restart: bool
    parent_pid: int
    inherited_fds: tuple[int, ...]  # a forked worker holds its siblings' ends open, which would hide a death


class Landed(NamedTuple):
    """Lanes that were stepped one by one, with what they had to report: one message, so that neither comes alone."""

    lanes: list[int]
    reports: list[Report]


def run_worker(conn: Connection, assignment: Assignment, pickled_make: bytes | None, make: EnvMaker | None) -> None:
    """Entry point of a worker process. `make` comes pickled, except to a forked worker."""
    _leave_signals_to_the_parent()
    multiprocessing.current_process().daemon = False  # environments may have processes of their own
    for fd in assignment.inherited_fds:
        os.close(fd)
    shared_blocks: list[Block] = []
    threading.Thread(target=_exit_with_parent, args=(assignment.parent_pid, shared_blocks), daemon=True).start()
    _seed_process()
    gc.freeze()  # what came with the process and its imports is no garbage: collections need not look at it
    try:
        channel = make_channel(conn)
        group = _start(channel, assignment, pickled_make, make, shared_blocks)
        if group is not None:
            _serve(channel, group)
            group.close()
    except (Hangup, EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the parent is gone, and nobody is left to tell


def _leave_signals_to_the_parent() -> None:
    """Ctrl-C, `timeout` and a terminal that is closed signal the whole group; the parent saves and closes its workers.

    Simulators that an environment starts end by SIGTERM as ever: a handler, unlike SIG_IGN, is not handed on to other
    programs, and in forked ones it does what would happen without it.
    """
    worker = os.getpid()

    def ignore(number: int, frame: FrameType | None) -> None:
        if os.getpid() != worker:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, ignore)
    if HANGUP is not None and signal.getsignal(HANGUP) != signal.SIG_IGN:  # as under `nohup`
        signal.signal(HANGUP, ignore)


def _exit_with_parent(parent_pid: int, shared_blocks: list[Block]) -> None:
    """Die at once when the parent does, even in the middle of an endless step."""
    if sys.platform == "linux" and not PORTABLE:
        from shoal.vector.workers.linux import await_end

        await_end(parent_pid)
    else:
        from shoal.vector.workers.portable import await_parents_end

        await_parents_end(parent_pid)
    for block in shared_blocks:
        block.forsake()
    os._exit(1)


def _start(
    channel: Channel,
    assignment: Assignment,
    pickled_make: bytes | None,
    make: EnvMaker | None,
    shared_blocks: list[Block],
) -> LaneGroup | None:
    """Build the lanes in the shared memory that the parent sends once it knows the spaces."""
    try:
        if make is None:
            assert pickled_make is not None
            make = pickle.loads(pickled_make)
        assert make is not None
        traits: Traits | None = channel.conn.recv()
        if traits is None:
            traits = probe(make)
            _reply(channel, traits)
        block = receive_block(channel.conn)
        shared_blocks.append(block)
        shared = Shared(traits, assignment.num_envs, assignment.num_workers, block)
        block.close()
        group = LaneGroup(
            make,
            traits,
            shared.buffers.lanes(assignment.first_lane, assignment.stop_lane),
            autoreset_mode=assignment.autoreset_mode,
            first_lane=assignment.first_lane,
            restart=assignment.restart,
            current=shared.current[assignment.worker],
        )
    except (Hangup, EOFError):
        raise
    except Exception as error:
        _reply_failure(channel, error)
        return None
    _reply(channel, None)
    return group


def _serve(channel: Channel, group: LaneGroup) -> None:
    calls: dict[str, Callable[..., Any]] = {
        "reset": partial(_reset, group),
        "revive_all": group.revive_all,
        "save": group.save,
        "load": group.load,
        "call": lambda name, sent: group.call(name, *pickle.loads(sent)),
        "set_attr": lambda name, sent: group.set_attr(name, pickle.loads(sent)),
    }
    while True:
        linger(channel.has_word)
        word = channel.read_word()
        try:
            if word == STEP_ALL:
                report = group.step()
                if report:
                    _reply(channel, report)
                else:
                    channel.write_words((DONE,))
            elif word == CALL:
                name, arguments = channel.conn.recv()
                if name == "close":
                    return
                _reply(channel, calls[name](*arguments))
            else:
                _step_lanes(channel, group, word)
        except (Hangup, EOFError, BrokenPipeError):
            raise
        except Exception as error:
            _reply_failure(channel, error)


def _reset(group: LaneGroup, rows: Sequence[int], seeds: Sequence[int | None], options: Any) -> Report:
    """As `LaneGroup.reset`; torch's generator, which lanes of a worker share, gets the first of the seeds."""
    given = next((seed for seed in seeds if seed is not None), None)
    if given is not None and "torch" in sys.modules:
        sys.modules["torch"].manual_seed(given % 2**63)
    return group.reset(rows, seeds, options)


def _seed_process() -> None:
    """Workers that were forked from one server would all draw the same while nobody gives them a seed."""
    random.seed()
    np.random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()


def _step_lanes(channel: Channel, group: LaneGroup, lane: int) -> None:
    """Step `lane` and all those whose words are waiting behind it; report them in small groups as they finish."""
    landed = Landed([], [])
    last_told = time.perf_counter()
    while True:
        report = group.step([lane - group.first_lane])
        landed.lanes.append(lane)
        if report:
            landed.reports.append(report)
        more = channel.has_word()
        now = time.perf_counter()
        if not more or now - last_told > _FLUSH_AFTER_S:
            if landed.reports:
                _reply(channel, landed)
            else:
                channel.write_words(landed.lanes)
            landed, last_told = Landed([], []), now
        if not more:
            return
        lane = channel.read_word()


def _reply(channel: Channel, result: Report | Traits | Any) -> None:
    content = _pickled(result)
    channel.write_words((REPORT,))
    channel.conn.send_bytes(content)


def _pickled(result: object) -> Any:
    """What `Connection.recv` reads; made before anything is sent, as it can fail."""
    with contextlib.suppress(Exception):
        return pickle.dumps(result)
    try:
        return cloudpickle.dumps(result)  # slower, but takes instances of the classes that came by value
    except Exception as error:
        kind = type(error).__name__
        raise StateError(
            f"What the worker was asked for cannot be sent back by pickling it ({kind}: {error})."
        ) from error


def _reply_failure(channel: Channel, error: Exception) -> None:
    channel.write_words((FAILED,))
    try:
        channel.conn.send(error)
    except (pickle.PicklingError, TypeError, AttributeError):
        channel.conn.send(RuntimeError(f"{type(error).__name__}: {error}"))
