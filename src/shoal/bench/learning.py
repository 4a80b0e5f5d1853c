"""PPO on images, learning included: Shoal beside whoever else is installed, interleaved. For the suites about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from shoal.bench.rounds import Row, rows_of
from shoal.bench.train import Say, best_worker, installed, opened, rates_of, take_turns
from shoal.bench.trainers import Contender, Work

POINTS = 10  # of a curve


def measure_learning(suite: str, work: Work, contenders: Sequence[Contender], rounds: int, say: Say) -> list[Row]:
    """Environment steps per second, learning included."""
    with ExitStack() as stack:
        workers = opened(stack, (best_worker(contender, work, say) for contender in installed(None, contenders)))
        answers = take_turns(workers, rounds)
    name = f"{work.world} ppo {work.num_envs}x{work.num_steps}, {work.epochs} epochs, {work.minibatches} minibatches"
    return rows_of(suite, name, work.num_envs, rates_of(answers), "shoal", "wall")


def curves(
    work: Work, contenders: Sequence[Contender], steps: int, say: Callable[[str], None]
) -> list[dict[str, object]]:
    """Mean return of the last 100 episodes as everyone learns, in turns: a row for each and every tenth of `steps`."""
    rows: list[dict[str, object]] = []
    with ExitStack() as stack:
        workers = opened(stack, (best_worker(contender, work, say) for contender in installed(None, contenders)))
        first = {"seed": work.seed}
        done = dict.fromkeys((worker.contender.name for worker in workers), 0.0)
        for point in range(POINTS):
            for worker in workers:
                name = worker.contender.name
                wanted = steps * (point + 1) / POINTS - done[name]
                answer = worker.ask(max(1, round(wanted / work.batch_size)), **first)
                done[name] += answer["steps"]
                rows.append({"work": work.world, "name": name, "steps": done[name], "return": answer["return"]})
                say(f"{work.world}, {name}: {answer['return']:.2f} after {done[name]:,.0f} steps")
            first = {}
    return rows
