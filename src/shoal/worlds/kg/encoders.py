"""From ids to vectors: atoms by how a KGE model would combine predicate and arguments, states by what they hold.

E is the embedding size, A the goals of a state. Padding has id 0 and a zero vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from shoal.errors import ConfigError, unknown_name


def transe(p: Tensor, h: Tensor, t: Tensor) -> Tensor:
    return p + h - t


def add(p: Tensor, h: Tensor, t: Tensor) -> Tensor:
    return p + h + t


def complex_product(p: Tensor, h: Tensor, t: Tensor) -> Tensor:
    """ComplEx's score before it is summed: real parts in the first half, imaginary ones in the second."""
    (pr, pi), (hr, hi), (tr, ti) = (x.chunk(2, -1) for x in (p, h, t))
    real = hr * tr * pr + hi * ti * pr + hr * ti * pi - hi * tr * pi
    return torch.cat([real, real], -1)


def rotate(p: Tensor, h: Tensor, t: Tensor) -> Tensor:
    """How far the tail, turned by the predicate's phases, is from the head: modulus per component."""
    phase = p.chunk(2, -1)[0]
    (hr, hi), (tr, ti) = h.chunk(2, -1), t.chunk(2, -1)
    cosine, sine = torch.cos(phase), torch.sin(phase)
    real, imaginary = tr * cosine - ti * sine - hr, tr * sine + ti * cosine - hi
    modulus = torch.sqrt(real**2 + imaginary**2 + 1e-12)
    return torch.cat([modulus, modulus], -1)


PLAIN_ATOMS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "transe": transe,
    "sum": add,
    "complex": complex_product,
    "rotate": rotate,
}
ATOM_ENCODERS = (*PLAIN_ATOMS, "concat")
STATE_ENCODERS = ("mean", "sum", "role", "concat", "rnn", "transformer", "attention")


class AtomEncoder(nn.Module):
    """(predicate, first, second) vectors [..., E] each -> [..., E]."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__()
        if name not in ATOM_ENCODERS:
            raise unknown_name("atom encoder", name, ATOM_ENCODERS, "`shoal.worlds.kg.encoders`")
        if name in ("complex", "rotate") and size % 2:
            raise ConfigError(f"embedding_size={size} is odd; {name!r} needs pairs of real and imaginary parts.")
        self.combine = PLAIN_ATOMS.get(name)
        self.linear = nn.Linear(3 * size, size) if name == "concat" else None

    def forward(self, p: Tensor, h: Tensor, t: Tensor) -> Tensor:
        if self.linear is not None:
            return self.linear(torch.cat([p, h, t], -1))
        assert self.combine is not None
        return self.combine(p, h, t)


class StateEncoder(nn.Module):
    """Atoms [M, A, E] of which `present` [M, A] exist -> states [M, E].

    `role` keeps the first goal, which is the one to be resolved, apart from the mean of the others.
    """

    def __init__(self, name: str, size: int, max_atoms: int) -> None:
        super().__init__()
        if name not in STATE_ENCODERS:
            raise unknown_name("state encoder", name, STATE_ENCODERS, "`shoal.worlds.kg.encoders`")
        self.name = name
        if name == "role":
            self.merge = nn.Linear(2 * size, size)
        elif name == "concat":
            self.merge = nn.Linear(max_atoms * size, size)
        elif name == "rnn":
            self.cell = nn.GRU(size, size, batch_first=True)
        elif name == "transformer":
            heads = math.gcd(4, size)
            self.layer = nn.TransformerEncoderLayer(size, heads, 2 * size, dropout=0.0, batch_first=True)
        elif name == "attention":
            self.weight = nn.Linear(size, 1)

    def forward(self, atoms: Tensor, present: Tensor) -> Tensor:
        some = present.unsqueeze(-1)
        atoms = atoms * some
        if self.name == "sum":
            return atoms.sum(1)
        if self.name == "role":
            return self.merge(torch.cat([atoms[:, 0], _mean(atoms[:, 1:], some[:, 1:])], -1))
        if self.name == "concat":
            return self.merge(atoms.flatten(1))
        if self.name == "rnn":
            last = (present.sum(1) - 1).clamp(min=0)
            return self.cell(atoms)[0][torch.arange(len(atoms), device=atoms.device), last]
        if self.name == "transformer":
            return _mean(self.layer(atoms, src_key_padding_mask=~present) * some, some)
        if self.name == "attention":
            score = self.weight(atoms).masked_fill(~some, -1e9)
            return (torch.softmax(score, 1) * atoms).sum(1)
        return _mean(atoms, some)


def _mean(atoms: Tensor, some: Tensor) -> Tensor:
    return atoms.sum(1) / some.sum(1).clamp(min=1)
