"""`shoal bench seats`: Connect Four and spread, stepped with random moves, against the peers installed here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.bench.contender import Contender, Run, Work
from shoal.bench.report import Interleaved, measure
from shoal.training.lab import Verb

if TYPE_CHECKING:
    import numpy as np

    from shoal.vector.batch import Batch


@dataclass(frozen=True)
class SeatsArgs(Interleaved):
    """Measure lanes with seats: whole games of random legal moves, and random actions of three particles."""

    lanes: int = 1024
    """Environments stepped as one batch. Peers in Python have one, and step it as often."""


def run(args: SeatsArgs) -> int:
    """The command."""
    measure("seats", works(args.lanes), args)
    return 0


def works(lanes: int) -> list[Work]:
    """Both games."""
    ours, theirs = "shoal.bench.seats:", "pettingzoo"
    games = (
        ("connect4", "connect4_kernel", Contender("pgx scan", f"{ours}pgx_scan", {}, "pgx"), "connect_four"),
        ("spread", "spread_kernel", Contender("JaxMARL scan", f"{ours}jaxmarl_scan", {}, "jaxmarl"), "spread"),
    )
    listed = []
    for name, kernel, arrays, zoo in games:
        contenders = [Contender("shoal kernel", f"{ours}{kernel}"), arrays]
        contenders.append(Contender(f"{theirs} {zoo}", f"{ours}{zoo}_of_pettingzoo", {"batch": lanes}, theirs))
        listed.append(Work(name, lanes, tuple(contenders)))
    return listed


# ---------------------------------------------------------------------- contenders, each in a process of its own


def connect4_kernel(num_envs: int) -> Run:
    """Random bots in both seats, who play inside the kernel: as with pgx, whole games without Python."""
    import numpy as np

    import shoal

    batch = shoal.make("connect4", num_envs, num_threads=1, copy=False, lanes={"seat": [1, 1]})
    return _stepping(batch, np.zeros((1, num_envs, 2), np.int64))


def spread_kernel(num_envs: int) -> Run:
    """Random actions, drawn beforehand."""
    import numpy as np

    import shoal

    batch = shoal.make("spread", num_envs, num_threads=1, copy=False)
    return _stepping(batch, np.random.default_rng(0).integers(5, size=(16, num_envs, 3)))


def _stepping(batch: Batch, actions: np.ndarray) -> Run:
    batch.reset(seed=0)

    def run(count: int) -> int:
        for k in range(count):
            batch.step(actions[k % len(actions)])
        return count

    return run


def pgx_scan(num_envs: int) -> Run:
    """pgx's Connect Four with its automatic reset, random legal moves, 64 steps in one jitted scan."""
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental.wrappers import auto_reset

    game = pgx.make("connect_four")
    step = jax.vmap(auto_reset(game.step, game.init))

    def one(carry: Any, _: Any) -> Any:
        state, key = carry
        key, draw, begin = jax.random.split(key, 3)
        logits = jnp.where(state.legal_action_mask, 0.0, -jnp.inf)
        action = jax.random.categorical(draw, logits, axis=1)
        return (step(state, action, jax.random.split(begin, num_envs)), key), state.rewards

    key = jax.random.PRNGKey(0)
    return _scanning(one, (jax.jit(jax.vmap(game.init))(jax.random.split(key, num_envs)), key))


def jaxmarl_scan(num_envs: int) -> Run:
    """JaxMARL's MPE_simple_spread_v3 with its automatic reset, random actions, 64 steps in one jitted scan."""
    import jax
    import jaxmarl

    game = jaxmarl.make("MPE_simple_spread_v3")

    def one(carry: Any, _: Any) -> Any:
        (_, state), key = carry
        key, draw, move = jax.random.split(key, 3)
        chosen = jax.random.randint(draw, (game.num_agents, num_envs), 0, 5)
        actions = dict(zip(game.agents, chosen, strict=True))
        obs, state, rewards, _, _ = jax.vmap(game.step)(jax.random.split(move, num_envs), state, actions)
        return ((obs, state), key), rewards

    key = jax.random.PRNGKey(0)
    return _scanning(one, (jax.jit(jax.vmap(game.reset))(jax.random.split(key, num_envs)), key))


def _scanning(one: Callable[[Any, Any], Any], carry: Any) -> Run:
    """64 steps in a jitted scan, as often as they are wanted."""
    import jax

    play = jax.jit(lambda carry: jax.lax.scan(one, carry, None, 64))

    def run(count: int) -> int:
        nonlocal carry
        scans = -(-count // 64)
        for _ in range(scans):
            carry, rewards = play(carry)
        jax.block_until_ready((carry, rewards))
        return 64 * scans

    return run


def connect_four_of_pettingzoo(num_envs: int, batch: int) -> Run:
    """One game after the other of random legal moves; a batch step is as many moves as there are lanes."""
    import numpy as np
    from pettingzoo.classic import connect_four_v3

    game, rng = connect_four_v3.env(), np.random.default_rng(0)
    game.reset(seed=0)

    def run(count: int) -> int:
        for _ in range(count * batch):
            obs, _, ended, cut, _ = game.last()
            if ended or cut:
                game.reset()
                obs = game.last()[0]
            game.step(int(rng.choice(np.flatnonzero(obs["action_mask"]))))
        return count

    return run


def spread_of_pettingzoo(num_envs: int, batch: int) -> Run:
    """mpe2's simple_spread_v3, one environment; a batch step is as many of its steps as there are lanes."""
    import numpy as np
    from mpe2 import simple_spread_v3

    game, rng = simple_spread_v3.parallel_env(), np.random.default_rng(0)
    game.reset(seed=0)

    def run(count: int) -> int:
        for _ in range(count * batch):
            if not game.agents:
                game.reset()
            game.step({name: int(rng.integers(5)) for name in game.agents})
        return count

    return run


SUITE = Verb(SeatsArgs, run)
