"""Sets have an order of Python's own: what depends on it is refused, what does not is followed."""

from __future__ import annotations

import pytest

from shoal.port.refusal import Refused
from shoal.port.watch import watch
from shoal.port.writer import translate
from tests.port.test_constructs import Small


class OfCells(Small):
    """Cells of a grid that come and go."""

    def begin(self):
        self.cells, self.last, self.total = {(0, 0), (1, 2)}, 0, 0.0

    def change(self, action):
        cell = (int(self.np_random.integers(4)), action)
        if cell in self.cells:
            self.cells.remove(cell)
        else:
            self.cells.add(cell)
        return self.looked_at()


class Drawn(OfCells):
    def looked_at(self):
        board, beside, count = [0] * 16, [0] * 16, 0
        for r, c in self.cells:
            board[4 * r + c] = 1
            k = 4 * r + c
            beside[k] += 1
            if r == c:
                count += 1
        return [sum(board), beside[5], count, len(self.cells)]


class LastOfThem(OfCells):
    def looked_at(self):
        found = 0
        for r, c in self.cells:
            if r > 0:
                found = c
        return [found, 0, 0, 0]


class KeptInAnAttribute(OfCells):
    def looked_at(self):
        for r, c in self.cells:
            self.last = r - c
        return [self.last, 0, 0, 0]


class DrawnElsewhere(OfCells):
    def moved(self, r):
        self.last += int(self.np_random.integers(r + 1))

    def looked_at(self):
        for r, _ in self.cells:
            self.moved(r)
        return [self.last, 0, 0, 0]


class AddedUp(OfCells):
    def looked_at(self):
        for r, c in self.cells:
            self.total += (r + 0.1) / (c + 1)
        return [int(self.total), 0, 0, 0]


class Summed(OfCells):
    def looked_at(self):
        return [int(sum((r + 0.1) / (c + 1) for r, c in self.cells)), 0, 0, 0]


class TwoKinds(OfCells):
    def looked_at(self):
        total = 0
        for r, c in self.cells:
            total *= 3
            total += r + c
        return [total % 7, 0, 0, 0]


def test_a_board_is_drawn_from_a_set(proven):
    assert proven(Drawn)[1].steps >= 96


@pytest.mark.parametrize("cls", [LastOfThem, KeptInAnAttribute, DrawnElsewhere, AddedUp, Summed, TwoKinds])
def test_what_depends_on_the_order_of_a_set_is_refused(cls):
    with pytest.raises(Refused, match="depends on the order of a set") as refused:
        translate(watch(cls()), "Ported")
    assert "sorted(...)" in str(refused.value)
    assert refused.value.obstacle.line > 0
