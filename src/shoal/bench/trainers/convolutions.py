"""Nothing but the standard convolutions of a PPO iteration, on pixels that are in order: the limit of a trainer."""

from __future__ import annotations

from contextlib import closing

import torch

from shoal.agents.encoders import BODIES, ImageEncoder, network_for
from shoal.agents.images import image_of
from shoal.bench.trainers import Trainer, Work
from shoal.registry import make


def start(work: Work) -> Trainer:
    """Forward for every step of a rollout, forward and back for every minibatch."""
    with closing(make(work.world, 1)) as lane:
        space = lane.single_observation_space
    image = image_of(space)
    assert image is not None
    encoder = ImageEncoder(image._replace(order=(0, 1, 2), low=0.0, scale=1.0), BODIES[network_for(space, "auto")])
    lanes, rows = (
        torch.rand(count, image.channels, image.height, image.width).contiguous(memory_format=torch.channels_last)
        for count in (work.num_envs, work.batch_size // work.minibatches)
    )
    slope = torch.rand(len(rows), encoder.size)

    def iterate(iterations: int) -> None:
        for _ in range(iterations):
            with torch.no_grad():
                for _ in range(work.num_steps):
                    encoder(lanes)
            for _ in range(work.epochs * work.minibatches):
                encoder.zero_grad()
                encoder(rows).backward(slope)

    return Trainer(iterate, lambda: 0.0)
