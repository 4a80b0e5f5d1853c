"""A user's files: read as they are laid out, and every row that cannot be used is counted."""

import csv

import numpy as np
import pytest

import shoal
from shoal.errors import ConfigError
from shoal.worlds.dvrp.lanes.csv_files import FLEXIBILITY, load_city, load_pool
from shoal.worlds.dvrp.lanes.fleet import Fleet
from shoal.worlds.dvrp.lanes.offers import ACTIONS, NO_OFFER

CELLS = ["8728308a", "8728308b", "8728308c"]
MINUTES = Fleet(cost_matrix="duration")
COLUMNS = [
    "",
    "traveler_id",
    "flexibility",
    "trip_purpose",
    "departure_location",
    "arrival_location",
    "departure_time_window",
    "arrival_time_window",
    "flexibility_pickup_earlier",
    "flexibility_dropoff_later",
    "origin_h3",
    "destination_h3",
]


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def trip(who, kind, purpose="Work", start="08:00-08:30", end="08:15-08:45", limit=(10, 20), ends=(0, 1)):
    cells = [CELLS[i] if isinstance(i, int) else i for i in ends]
    return [0, who, FLEXIBILITY[kind], purpose, "Home", "Office", start, end, *limit, *cells]


def decision(row, action, answers):
    early, late = ACTIONS[action]
    return [*row[1:2], *row[3:8], -early, late, row[2], *["accept" if yes else "reject" for yes in answers]]


@pytest.fixture
def files(tmp_path):
    seconds = [[0, 600, 700], [650, 0, 300], [720, 310, 0]]
    times = write(tmp_path / "times.csv", ["h3", *CELLS], [[n, *row] for n, row in zip(CELLS, seconds, strict=True)])
    rows = [
        trip(1, 3),
        trip(1, 3, "Dinner with friends", "19:00-19:30", "19:20-19:50", (30, 45), (1, 2)),
        trip(2, 0, "Groceries", ends=(2, 0)),
    ]
    return times, rows, tmp_path


def test_trips_and_times_become_a_pool(files):
    times, rows, folder = files
    city = load_city(times, depot=CELLS[1])
    pool, report = load_pool(write(folder / "trips.csv", COLUMNS, rows), city, MINUTES)
    assert (city.depot, city.names, city.duration[0, 2]) == (1, tuple(CELLS), 700)
    assert report.used == 3
    assert report.skipped == {}
    assert pool.type.tolist() == [3, 0]
    assert pool.num_trips.tolist() == [2, 1]
    assert pool.pickup_start[0].tolist() == [480, 1140]
    assert pool.limit[0].tolist() == [[10, 20], [30, 45]]
    assert pool.purpose[0].tolist() == [0, 2]
    assert pool.purpose[1, 0] == 1


def test_bad_rows_are_counted(files):
    times, rows, folder = files
    bad = [
        trip(1, 3, ends=(0, "nowhere")),
        trip(1, 3, start="8 o'clock"),
        trip(1, 3, start="08:00-09:00"),
        trip(1, 3, start="12:00-12:30", end="08:15-08:45"),
        trip(1, 3, limit=("some", 3)),
    ]
    bad.append([*trip(1, 3)[:2], "flexible on Sundays", *trip(1, 3)[3:]])
    path = write(folder / "trips.csv", COLUMNS, [*rows, *bad])
    with pytest.warns(UserWarning, match="3 trips read, 6 skipped: 1 with an unknown cell"):
        _, report = load_pool(path, load_city(times), MINUTES)
    assert sorted(report.skipped.values()) == [1, 1, 1, 1, 2]


def test_recorded_decisions_answer_in_the_environment(files):
    times, rows, folder = files
    trips = write(folder / "trips.csv", COLUMNS, rows)
    answers = np.random.default_rng(0).random((len(rows), 16, 4)) < 0.5
    header = [*COLUMNS[1:2], *COLUMNS[3:8], "pickup_shift_min", "dropoff_shift_min", "flexibility", *FLEXIBILITY]
    decided = [decision(row, a, answers[i, a]) for i, row in enumerate(rows) for a in range(16)]
    decisions = write(folder / "decisions.csv", header, decided)
    env = shoal.make(
        "dvrp",
        64,
        customers=2,
        travel_times=times,
        trips=trips,
        decisions=decisions,
        cost_matrix="duration",
        acceptance="csv",
        oracle="insertion",
    )
    env.reset(seed=0)
    trip_of = {(1, 0): 0, (1, 1): 1, (2, 0): 2}
    action = np.random.default_rng(1).integers(0, 16, 64)
    which = [trip_of[key] for key in zip(env.state["user"][:, 0], env.state["trip"][:, 0], strict=True)]
    expected = answers[which, action, env.state["type"][:, 0]] | (action == NO_OFFER)
    np.testing.assert_array_equal(env.step(action)[4]["accepted"], expected)
    with pytest.warns(UserWarning, match="1 with no recorded decisions"):
        load_pool(trips, load_city(times), MINUTES, write(folder / "few.csv", header, decided[:-1]))


def test_files_that_cannot_be_read_are_named(files, tmp_path):
    times, rows, folder = files
    city = load_city(times)
    with pytest.raises(ConfigError, match=r"Cannot read .*missing\.csv: No such file"):
        load_city(str(tmp_path / "missing.csv"))
    with pytest.raises(ConfigError, match="has no column 'origin_h3'"):
        load_pool(write(folder / "t.csv", COLUMNS[:-2], [row[:-2] for row in rows]), city, MINUTES)
    with pytest.raises(ConfigError, match="no usable trip"):
        load_pool(write(folder / "u.csv", COLUMNS, [trip(1, 1, ends=("a", "b"))]), city, MINUTES)
    with pytest.raises(ConfigError, match="'elsewhere' is not one of the 3 cells"):
        load_city(times, depot="elsewhere")
    with pytest.raises(ConfigError, match="same cells in order"):
        load_city(write(folder / "m.csv", ["h3", "a", "b"], [["a", 0, 1]]))
    with pytest.raises(ConfigError, match="not a matrix of numbers"):
        load_city(write(folder / "w.csv", ["h3", "a", "b"], [["a", 0, "x"], ["b", 1, 0]]))
    with pytest.raises(ConfigError, match="has no distance matrix"):
        shoal.make("dvrp", 1, customers=2, travel_times=times, trips=write(folder / "v.csv", COLUMNS, rows))
