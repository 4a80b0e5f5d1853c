"""Readers for a user's CSV files in the original layout. A row that cannot be used is counted and reported."""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.dvrp.lanes.city import City, city_from_matrices
from shoal.worlds.dvrp.lanes.fleet import Fleet
from shoal.worlds.dvrp.lanes.offers import ACTIONS, NO_OFFER
from shoal.worlds.dvrp.lanes.pool import ERRAND, LEISURE, STRICT, WINDOW, Pool
from shoal.worlds.dvrp.lanes.scenario import Scenario, unservable_trips

FLEXIBILITY = (
    "flexible for late dropoff, but inflexible for early pickup",
    "flexible for early pickup, but inflexible for late dropoff",
    "inflexible for any schedule changes",
    "flexible for both early pickup and late dropoff",
)
"""The sentences that name the four types, in the order of the types."""

_PURPOSE_WORDS = {
    STRICT: ("work", "commut", "school", "class", "medical", "appointment", "meeting"),
    LEISURE: ("leisure", "social", "recreation", "entertain", "visit", "friend", "dining", "dinner", "gym", "park"),
}
_TRIP_KEY = (
    *("traveler_id", "trip_purpose", "departure_location", "arrival_location"),
    *("departure_time_window", "arrival_time_window"),
)
_ACTION_OF = {(-int(early), int(late)): action for action, (early, late) in enumerate(ACTIONS)}


class Report(NamedTuple):
    """What a reader made of a file."""

    used: int
    skipped: dict[str, int]  # rows left out, by reason

    def __str__(self) -> str:
        reasons = ", ".join(f"{count} with {reason}" for reason, count in self.skipped.items())
        return f"{self.used} trips read" + (f", {sum(self.skipped.values())} skipped: {reasons}." if reasons else ".")


class _Trip(NamedTuple):
    """One row of the trips file, as the fields of `Pool` name it; minutes."""

    origin: int
    dest: int
    pickup_start: int
    dropoff_start: int
    purpose: int
    limit: tuple[int, int]


def load_city(travel_times: str, distances: str | None = None, depot: str | None = None) -> City:
    """A city from a matrix of driving seconds and, if there is one, a matrix of metres between the same cells."""
    names, seconds = _read_matrix(travel_times)
    metres = None
    if distances is not None:
        other, metres = _read_matrix(distances)
        if set(other) != set(names):
            raise ConfigError(f"{distances} and {travel_times} name different cells.")
        order = [other.index(name) for name in names]
        metres = metres[np.ix_(order, order)]
    if depot is not None and depot not in names:
        raise ConfigError(f"The depot {depot!r} is not one of the {len(names)} cells of {travel_times}.")
    return city_from_matrices(seconds, metres, depot=0 if depot is None else names.index(depot), names=names)


def load_pool(trips: str, city: City, fleet: Fleet, decisions: str | None = None) -> tuple[Pool, Report]:
    """Travellers and their trips; with `decisions`, only trips whose answers to all sixteen offers are recorded.

    Rows left out (unknown cells, unreadable windows, windows that nobody could keep, ...) are in the report, and a
    warning tells their number.
    """
    cells = {name: number for number, name in enumerate(city.names)}
    answers = {} if decisions is None else _read_decisions(decisions)
    skipped: Counter[str] = Counter()
    kept: dict[str, list[tuple[_Trip, np.ndarray | None]]] = {}
    types: dict[str, int] = {}
    for row in _read_rows(trips, (*_TRIP_KEY, "flexibility", "origin_h3", "destination_h3")):
        trip = _read_trip(row, cells)
        answer = answers.get(_key(row))
        if isinstance(trip, str):
            skipped[trip] += 1
        elif _is_unservable(trip, city, fleet):
            skipped["windows that no vehicle could keep"] += 1
        elif decisions is not None and answer is None:
            skipped["no recorded decisions"] += 1
        else:
            kept.setdefault(row["traveler_id"], []).append((trip, answer))
            types[row["traveler_id"]] = FLEXIBILITY.index(row["flexibility"].strip())
    report = Report(sum(map(len, kept.values())), dict(skipped))
    if not kept:
        raise ConfigError(f"{trips} has no usable trip: {report}")
    if skipped:
        warnings.warn(f"{Path(trips).name}: {report}", stacklevel=2)
    order = sorted(kept, key=lambda who: (int(who) if who.isdigit() else 0, who))
    return _make_pool([kept[who] for who in order], [types[who] for who in order]), report


def _make_pool(travellers: list[list[tuple[_Trip, np.ndarray | None]]], types: list[int]) -> Pool:
    """Pad every traveller to the longest list by repeating the first trip; `num_trips` says how many are real."""
    longest = max(map(len, travellers))
    padded = [trips + trips[:1] * (longest - len(trips)) for trips in travellers]
    fields = {
        name: np.array([[getattr(trip, name) for trip, _ in trips] for trips in padded], np.int16)
        for name in _Trip._fields
    }
    recorded = travellers[0][0][1] is not None
    accepts = np.array([[answer for _, answer in trips] for trips in padded], np.bool_) if recorded else None
    num_trips = np.array([len(trips) for trips in travellers])
    return Pool(type=np.array(types, np.int16), num_trips=num_trips, accepts=accepts, **fields)


# ---------------------------------------------------------------------- rows


def _read_trip(row: dict[str, str], cells: dict[str, int]) -> _Trip | str:
    """A trip, or in words why the row cannot be used."""
    origin, dest = cells.get(row["origin_h3"].strip()), cells.get(row["destination_h3"].strip())
    if origin is None or dest is None:
        return "an unknown cell"
    pickup, dropoff = _read_window(row["departure_time_window"]), _read_window(row["arrival_time_window"])
    if pickup is None or dropoff is None:
        return f"a window that is not HH:MM-HH:MM over {WINDOW} minutes"
    if row["flexibility"].strip() not in FLEXIBILITY:
        return "an unknown flexibility"
    try:
        limit = (int(float(row["flexibility_pickup_earlier"])), int(float(row["flexibility_dropoff_later"])))
    except (KeyError, ValueError):
        return "limits that are not numbers"
    words = row["trip_purpose"].lower()
    purpose = next((p for p, known in _PURPOSE_WORDS.items() if any(word in words for word in known)), ERRAND)
    return _Trip(origin, dest, pickup, dropoff, purpose, limit)


def _read_window(text: str) -> int | None:
    """The start in minutes of "HH:MM-HH:MM", if it is as wide as every window is."""
    try:
        start, end = (60 * int(part.split(":")[0]) + int(part.split(":")[1]) for part in text.strip().split("-"))
    except (ValueError, IndexError):
        return None
    return start if end - start == WINDOW and start >= 0 and end <= 1440 else None


def _is_unservable(trip: _Trip, city: City, fleet: Fleet) -> bool:
    alone = _make_pool([[(trip, None)]], [0])
    return bool(unservable_trips(Scenario(city, alone, fleet))[0, 0])


def _read_decisions(path: str) -> dict[tuple[str, ...], np.ndarray]:
    """[4, 16] answers by type and action for every trip of which all are recorded."""
    answers: dict[tuple[str, ...], np.ndarray] = {}
    known: Counter[tuple[str, ...]] = Counter()
    for row in _read_rows(path, (*_TRIP_KEY, "pickup_shift_min", "dropoff_shift_min", *FLEXIBILITY)):
        try:
            shift = abs(int(float(row["pickup_shift_min"]))), int(float(row["dropoff_shift_min"]))
        except ValueError:
            continue
        action = _ACTION_OF.get(shift)
        if action is not None:
            table = answers.setdefault(_key(row), np.zeros((len(FLEXIBILITY), len(ACTIONS)), np.bool_))
            table[:, action] = [row[sentence].strip().lower() == "accept" for sentence in FLEXIBILITY]
            known[_key(row)] += 1
    for table in answers.values():
        table[:, NO_OFFER] = True
    return {key: table for key, table in answers.items() if known[key] >= len(ACTIONS)}


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name].strip() for name in _TRIP_KEY)


# ---------------------------------------------------------------------- files


def _read_rows(path: str, needed: tuple[str, ...]) -> Iterator[dict[str, str]]:
    with _open(path) as file:
        reader = csv.DictReader(file, restval="")
        missing = [name for name in needed if name not in (reader.fieldnames or ())]
        if missing:
            raise ConfigError(f"{path} has no column {missing[0]!r}. It needs {', '.join(needed)}.")
        yield from reader


def _read_matrix(path: str) -> tuple[list[str], np.ndarray]:
    """Names of the cells and the matrix, from a header `h3,<cells...>` and one row per cell."""
    with _open(path) as file:
        header, *rows = [row for row in csv.reader(file) if row] or [[]]
    names = [name.strip() for name in header[1:]]
    if [row[0].strip() for row in rows] != names:
        raise ConfigError(
            f"{path} has {len(names)} columns and {len(rows)} rows; they must be the same cells in order."
        )
    try:
        return names, np.array([[float(entry) for entry in row[1:]] for row in rows])
    except ValueError as error:
        raise ConfigError(f"{path} is not a matrix of numbers: {error}.") from None


@contextmanager
def _open(path: str) -> Iterator[TextIO]:
    """The file; whatever keeps it from being read as CSV is one sentence."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            yield file
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path} is not a CSV file in UTF-8: {error}.") from None
