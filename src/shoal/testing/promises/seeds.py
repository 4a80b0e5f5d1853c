"""Seeds decide everything, and each lane for itself."""

from __future__ import annotations

from shoal.testing.case import Case
from shoal.testing.player import same_moments, same_story
from shoal.testing.subject import Subject


def same_seed_same_trajectory(subject: Subject, case: Case) -> None:
    """The same seed and actions give the same trajectory, again and in another batch."""
    first = subject.player(case).play()
    again = subject.player(case).play()
    same_moments(first, again, ("the first run", "a second run after reset with the same seed"))
    other = subject.player(case, twin=1).play()
    same_moments(first, other, ("one batch", "another batch with the same seed"))


def lanes_do_not_know_their_neighbours(subject: Subject, case: Case) -> None:
    """A lane's trajectory does not depend on how many other lanes there are."""
    few = subject.player(case).play()
    more = subject.player(case, num_envs=case.num_envs + 1).play()
    names = (f"a batch of {case.num_envs}", f"a batch of {case.num_envs + 1}")
    same_story(few, more, names, lanes=case.num_envs)
