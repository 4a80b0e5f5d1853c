"""What a worker process runs: its group of lanes, a word at a time, until its parent says so or is gone."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import select
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import Any, NamedTuple

from gymnasium.vector import AutoresetMode

from shoal.vector.lanes.group import LaneGroup, Report
from shoal.vector.lanes.making import EnvMaker, Traits, probe
from shoal.vector.workers.memory import Shared
from shoal.vector.workers.protocol import (
    CALL,
    DONE,
    FAILED,
    REPORT,
    STEP_ALL,
    Hangup,
    linger,
    read_word,
    write_words,
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes its workers
    multiprocessing.current_process().daemon = False  # environments may have processes of their own
    for fd in assignment.inherited_fds:
        os.close(fd)
    threading.Thread(target=_exit_with_parent, args=(assignment.parent_pid,), daemon=True).start()
    gc.freeze()  # what came with the process and its imports is no garbage: collections need not look at it
    try:
        group = _start(conn, assignment, pickled_make, make)
        if group is not None:
            _serve(conn, group)
            group.close()
    except (Hangup, EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the parent is gone, and nobody is left to tell


def _exit_with_parent(parent_pid: int) -> None:
    """Die at once when the parent does, even in the middle of an endless step."""
    try:
        parent = os.pidfd_open(parent_pid)
    except ProcessLookupError:
        os._exit(1)
    poller = select.poll()
    poller.register(parent, select.POLLIN)
    poller.poll()
    os._exit(1)


def _start(
    conn: Connection, assignment: Assignment, pickled_make: bytes | None, make: EnvMaker | None
) -> LaneGroup | None:
    """Build the lanes in the shared memory that the parent sends once it knows the spaces."""
    try:
        if make is None:
            assert pickled_make is not None
            make = pickle.loads(pickled_make)
        assert make is not None
        traits: Traits | None = conn.recv()
        if traits is None:
            traits = probe(make)
            _reply(conn, traits)
        fd = recv_handle(conn)
        shared = Shared(traits, assignment.num_envs, assignment.num_workers, fd)
        os.close(fd)
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
        _reply_failure(conn, error)
        return None
    _reply(conn, None)
    return group


def _serve(conn: Connection, group: LaneGroup) -> None:
    fd = conn.fileno()
    words = select.poll()
    words.register(fd, select.POLLIN)
    calls: dict[str, Callable[..., Any]] = {
        "reset": group.reset,
        "revive_all": group.revive_all,
        "save": group.save,
        "load": group.load,
    }
    while True:
        linger(words)
        word = read_word(fd)
        try:
            if word == STEP_ALL:
                report = group.step()
                if report:
                    _reply(conn, report)
                else:
                    write_words(fd, (DONE,))
            elif word == CALL:
                name, arguments = conn.recv()
                if name == "close":
                    return
                _reply(conn, calls[name](*arguments))
            else:
                _step_lanes(conn, group, word, words)
        except (Hangup, EOFError, BrokenPipeError):
            raise
        except Exception as error:
            _reply_failure(conn, error)


def _step_lanes(conn: Connection, group: LaneGroup, lane: int, words: select.poll) -> None:
    """Step `lane` and all those whose words are waiting behind it; report them in small groups as they finish."""
    fd = conn.fileno()
    landed = Landed([], [])
    last_told = time.perf_counter()
    while True:
        report = group.step([lane - group.first_lane])
        landed.lanes.append(lane)
        if report:
            landed.reports.append(report)
        more = bool(words.poll(0))
        now = time.perf_counter()
        if not more or now - last_told > _FLUSH_AFTER_S:
            if landed.reports:
                _reply(conn, landed)
            else:
                write_words(fd, landed.lanes)
            landed, last_told = Landed([], []), now
        if not more:
            return
        lane = read_word(fd)


def _reply(conn: Connection, result: Report | Traits | Any) -> None:
    write_words(conn.fileno(), (REPORT,))
    conn.send(result)


def _reply_failure(conn: Connection, error: Exception) -> None:
    write_words(conn.fileno(), (FAILED,))
    try:
        conn.send(error)
    except (pickle.PicklingError, TypeError, AttributeError):
        conn.send(RuntimeError(f"{type(error).__name__}: {error}"))
