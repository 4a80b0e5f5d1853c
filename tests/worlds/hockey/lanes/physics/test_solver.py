import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.vector.kernel.scratch import scratch
from shoal.worlds.hockey.lanes.constants import INV_INERTIA, INV_MASS, PUCK
from shoal.worlds.hockey.lanes.physics.advance import BODY, link
from shoal.worlds.hockey.lanes.physics.contacts import gather
from shoal.worlds.hockey.lanes.physics.solver import correct_positions, move, solve_velocities
from tests.worlds.hockey.lanes.rink import empty_contacts, make_rink, turn

speeds = st.floats(-15.0, 15.0)


def momentum(s):
    """Linear and angular momentum of rackets and puck about the origin."""
    mass, inertia = 1.0 / INV_MASS[:3], 1.0 / INV_INERTIA[:3]
    vx, vy, spin, cx, cy = (np.array(getattr(s, name))[:3] for name in ("vx", "vy", "spin", "cx", "cy"))
    return np.array([(mass * vx).sum(), (mass * vy).sum(), (inertia * spin + mass * (cx * vy - cy * vx)).sum()])


def energy(s):
    vx, vy, spin = (np.array(getattr(s, name))[:3] for name in ("vx", "vy", "spin"))
    return float((0.5 / INV_MASS[:3] * (vx**2 + vy**2) + 0.5 / INV_INERTIA[:3] * spin**2).sum())


@given(vx=speeds, vy=speeds, spin=speeds, angle=st.floats(-1.0, 1.0), y=st.floats(3.7, 4.3))
def test_a_collision_keeps_momentum_and_makes_no_energy(vx, vy, spin, angle, y):
    s = make_rink(racket_1=(5.0, 4.0), puck=(5.3, y))
    turn(s, 0, angle)
    s.vx[PUCK], s.vy[PUCK], s.spin[PUCK] = vx, vy, spin
    s.vx[0], s.spin[0] = 2.0, -3.0
    contacts = empty_contacts()
    count = gather(s, contacts)
    before, energy_before = momentum(s), energy(s)
    solve_velocities(s, contacts, count)
    np.testing.assert_allclose(momentum(s), before, atol=1e-9)
    assert energy(s) <= energy_before * (1 + 1e-9) + 1e-4


def test_a_fast_puck_bounces_and_a_slow_one_sticks():
    for speed, after in ((5.0, -0.95 * 5.0), (0.5, 0.0)):
        s = make_rink(puck=(5.0, 7.12))
        s.vy[PUCK] = speed
        contacts = empty_contacts()
        solve_velocities(s, contacts, gather(s, contacts))
        assert s.vy[PUCK] == pytest.approx(after, abs=1e-4)


def test_friction_spins_a_sliding_puck():
    s = make_rink(puck=(5.0, 7.12))
    s.vx[PUCK], s.vy[PUCK] = 10.0, 5.0
    contacts = empty_contacts()
    solve_velocities(s, contacts, gather(s, contacts))
    assert s.vx[PUCK] == pytest.approx(10.0 - 0.1 * 5.0 * 1.95, abs=1e-3)  # friction times the normal impulse
    assert s.spin[PUCK] > 0  # rolls along the ceiling


def test_overlaps_are_pushed_out_to_the_slop():
    s = make_rink(racket_1=(5.0, 4.0), puck=(5.1, 4.0))
    contacts = empty_contacts()
    count = gather(s, contacts)
    assert count == 1
    link(scratch(BODY, 4), contacts, count)
    correct_positions(s, contacts, count, contacts[0].group, 0.2, 60, -0.015)
    gap = s.cx[PUCK] - s.x[0] - 0.1 - (0.2166667 + 0.01)
    assert -0.0151 < gap <= 0.0


def test_groups_are_bodies_linked_by_contacts():
    s = make_rink(racket_1=(4.5, 7.0), racket_2=(8.0, 1.0), puck=(4.75, 7.12))
    contacts = empty_contacts()
    count = gather(s, contacts)
    bodies = scratch(BODY, 4)
    link(bodies, contacts, count)
    assert bodies.group.tolist() == [0, 1, 0, 3]
    assert {contacts[i].group for i in range(count)} == {0, 1}


def test_no_step_is_longer_than_two_metres_or_a_quarter_turn():
    s = make_rink()
    s.vx[PUCK], s.spin[PUCK] = 300.0, 200.0
    move(s, PUCK, 0.02)
    assert s.cx[PUCK] == pytest.approx(7.0)
    assert s.vx[PUCK] == pytest.approx(100.0)
    assert s.spin[PUCK] == pytest.approx(np.pi / 2 / 0.02)
