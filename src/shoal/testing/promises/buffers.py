"""No hidden copies, and no hidden sharing."""

from __future__ import annotations

from gymnasium.vector import AutoresetMode

from shoal.testing.findings import Broken, calls
from shoal.testing.player import OUTCOME, Case, same_moments
from shoal.testing.subject import Subject, demand_attributes
from shoal.testing.trees import demand_same, difference, keep, leaves
from shoal.trees import Tree
from shoal.vector.batch import Step


def what_step_returns_is_the_callers(subject: Subject, case: Case) -> None:
    """By default later steps do not change what was returned, and writing into it does not change the batch."""
    scribbled = subject.player(case)
    plain = subject.player(case, twin=1)
    for _ in range(case.num_steps):
        action = plain.choose()
        with calls("step"):
            returned = scribbled.env.step(action)
        moment = plain.step(action)
        kept = dict(zip(OUTCOME, keep(returned[:4]), strict=True))
        demand_same(kept, moment.outcome, f"Writing into what step() returned changed step {len(plain.moments)}")
        for _, leaf in leaves(returned[:4]):
            if leaf.flags.writeable:
                leaf[...] = 1
        if plain.mode is AutoresetMode.DISABLED and moment.done.any():
            scribbled.env.reset(options={"reset_mask": moment.done})


def without_copies_the_same_values(subject: Subject, case: Case) -> None:
    """`copy=False` hands out views that hold, until the next call, what copies would."""
    plain = subject.player(case).play()
    views = subject.player(case, copy=False).play()
    same_moments(plain, views, ("a batch that copies", "a batch with copy=False"))


def step_into_writes_where_it_is_told(subject: Subject, case: Case) -> None:
    """`step_into` writes what `step` returns, into the given buffers and no others."""
    env = demand_attributes(subject.batch(case.num_envs, twin=1), "step_into", "reset_into", "empty_step")
    plain = subject.player(case)
    subject.player(case, twin=1)
    buffers = (env.empty_step(), env.empty_step())
    for k in range(case.num_steps):
        action = plain.choose()
        if plain.resets.get(k) is not None:
            env.reset_into(buffers[(k + 1) % 2], options={"reset_mask": plain.resets[k][0]})
        given, idle = buffers[k % 2], buffers[(k + 1) % 2]
        before = keep_step(idle)
        with calls("step_into"):
            info = env.step_into(action, given)
        moment = plain.step(action)
        written = {name: keep(getattr(given, name)) for name in moment.outcome}
        demand_same(written, moment.outcome, f"Step {k + 1} differs between step_into() and step()")
        if difference(keep_step(idle), before):
            raise Broken(f"Step {k + 1} wrote into buffers of an earlier step_into().")
        if given.action_mask is not None and difference(keep(given.action_mask), keep(info["action_mask"])):
            raise Broken(f"In step {k + 1} info['action_mask'] is not what step_into() wrote to its buffer.")


def keep_step(step: Step) -> dict[str, Tree]:
    """A `Step` copied; a batch without masks has no action_mask buffer."""
    return {name: keep(value) for name, value in step._asdict().items() if value is not None}
