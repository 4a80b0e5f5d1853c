"""The policy: how well does a successor fit the state? A shared trunk encodes both; similarities are the logits.

Atoms become vectors by how a KGE model would combine predicate and arguments, states by what they hold. E is the
embedding size, A the goals of a state. Padding has id 0 and a zero vector.

The forward pass is ragged: only actions that exist are encoded, and each distinct state of the batch once.
N observations with M actions in all, of which U states are distinct. Under `torch.func.vmap` (as TorchRL's value
estimators use it) sizes must not depend on the data, and it is padded: every slot is encoded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.autograd.function import FunctionCtx

from shoal.errors import ConfigError
from shoal.seeding import mix
from shoal.worlds.kg.lanes.engine.tables import num_variables
from shoal.worlds.kg.lanes.env import KGBatch
from shoal.worlds.kg.lanes.kge.scoring import KGE
from shoal.worlds.kg.world import NetworkOptions

TWIN_HIDDEN = 32


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
    "transe": lambda p, h, t: p + h - t,
    "sum": lambda p, h, t: p + h + t,
    "complex": complex_product,
    "rotate": rotate,
}


class AtomEncoder(nn.Module):
    """(predicate, first, second) vectors [..., E] each -> [..., E]."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__()
        if name in ("complex", "rotate") and size % 2:
            raise ConfigError(f"embedding_size={size} is odd; {name!r} needs pairs of real and imaginary parts.")
        self.name = name
        if name == "concat":
            self.linear = nn.Linear(3 * size, size)

    def forward(self, p: Tensor, h: Tensor, t: Tensor) -> Tensor:
        return self.linear(torch.cat([p, h, t], -1)) if self.name == "concat" else PLAIN_ATOMS[self.name](p, h, t)


class StateEncoder(nn.Module):
    """Atoms [M, A, E] of which `present` [M, A] exist -> states [M, E].

    `role` keeps the first goal, which is the one to be resolved, apart from the mean of the others.
    """

    def __init__(self, name: str, size: int, max_atoms: int) -> None:
        super().__init__()
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
            outputs = unrolled(self.cell, atoms) if is_functorch_wrapped_tensor(atoms) else self.cell(atoms)[0]
            return outputs[torch.arange(len(atoms), device=atoms.device), last]
        if self.name == "transformer":
            return _mean(self.layer(atoms, src_key_padding_mask=~present) * some, some)
        if self.name == "attention":
            score = self.weight(atoms).masked_fill(~some, -1e9)
            return (torch.softmax(score, 1) * atoms).sum(1)
        return _mean(atoms, some)


def unrolled(cell: nn.GRU, inputs: Tensor) -> Tensor:
    """Outputs [M, A, E] of a GRU step by step; torch's own has no rule for vmap."""
    weights: Any = cell
    hidden, outputs = torch.zeros_like(inputs[:, 0]), []
    for step in inputs.unbind(1):
        given = nn.functional.linear(step, weights.weight_ih_l0, weights.bias_ih_l0).chunk(3, -1)
        kept = nn.functional.linear(hidden, weights.weight_hh_l0, weights.bias_hh_l0).chunk(3, -1)
        reset, update = (torch.sigmoid(given[k] + kept[k]) for k in range(2))
        hidden = (1 - update) * torch.tanh(given[2] + reset * kept[2]) + update * hidden
        outputs.append(hidden)
    return torch.stack(outputs, 1)


def _mean(atoms: Tensor, some: Tensor) -> Tensor:
    return atoms.sum(1) / some.sum(1).clamp(min=1)


class Trunk(nn.Module):
    """Linear, ReLU, LayerNorm; then residual blocks x + LayerNorm(ReLU(Linear(x)))."""

    def __init__(self, inputs: int, width: int, num_blocks: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.LayerNorm(width))
        blocks = (nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.LayerNorm(width)) for _ in range(num_blocks))
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return x


class Sizes(NamedTuple):
    """What a network must know of the lanes."""

    num_predicates: int  # rows of the table of predicates, i.e. the largest id plus one
    num_terms: int
    num_constants: int  # ids of terms above this are variables
    num_regular: int  # ids of predicates above this are ends of proofs or twins
    max_atoms: int


class ProofNetwork(nn.Module):
    """Actor and critic for `KGBatch`; see `shoal.agents.networks.Network`.

    Args:
        hidden: width of the trunk, repeated once per layer.
        kge: a model whose scores enter: twins' logits get an MLP of their log-score, and with `logit_bias` every
            successor's logit gets that much of the log-score of its first goal, if that is ground.
    """

    state_size = 0
    multiplier: Tensor

    def __init__(
        self, sizes: Sizes, options: NetworkOptions, hidden: tuple[int, ...] = (128, 128), kge: KGE | None = None
    ) -> None:
        super().__init__()
        if len(set(hidden)) != 1:
            raise ConfigError(f"hidden={hidden}: residual blocks need one width for all layers, e.g. (128, 128).")
        if options.logit_bias and kge is None:
            raise ConfigError("logit_bias asks a KGE model, but none was given. Pass kge=...")
        E, H = options.embedding_size, hidden[0]
        self.num_constants, self.num_regular = sizes.num_constants, sizes.num_regular
        self.logit_bias = options.logit_bias
        self.predicate, self.term = (nn.Embedding(rows, E, padding_idx=0) for rows in sizes[:2])
        # constants that training never asks about stay as they are: small, so that they do not tip the scales
        for table, scale in ((self.predicate, 1.0), (self.term, 0.1)):
            nn.init.normal_(table.weight, std=scale / math.sqrt(E))
            nn.init.zeros_(table.weight[0])
        self.encode_atom = AtomEncoder(options.atom_encoder, E)
        self.encode_state = StateEncoder(options.state_encoder, E, sizes.max_atoms)
        self.trunk, self.value_trunk = (Trunk(E, H, len(hidden) - 1) for _ in range(2))
        self.policy_head = nn.Sequential(nn.Linear(H, H), nn.ReLU(), nn.Linear(H, E))
        self.value_head = nn.Sequential(nn.Linear(H, H), nn.ReLU(), nn.Linear(H, 1))
        self.twin_bias = nn.Sequential(nn.Linear(1, TWIN_HIDDEN), nn.ReLU(), nn.Linear(TWIN_HIDDEN, 1))
        self._kge = [kge]  # in a list, so that its weights are not ours to train or save
        slots = torch.arange(3 * sizes.max_atoms).numpy().astype("uint64")
        self.register_buffer("multiplier", torch.from_numpy(mix(slots).view("int64") | 1), persistent=False)

    def forward(self, obs: dict[str, Tensor], state: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Padded observations [..., S, A, 3] -> logits [..., S], 0 where there is no action, and value [...]."""
        leading, (S, *_) = obs["derived_sub_indices"].shape[:-3], obs["derived_sub_indices"].shape[-3:]
        successors = obs["derived_sub_indices"].flatten(0, -4)
        here = obs["sub_index"].reshape(len(successors), *successors.shape[2:])
        score = self._score_padded if is_functorch_wrapped_tensor(successors) else self._score_ragged
        logits, value = score(here, successors)
        return logits.reshape(*leading, S), value.reshape(leading), state

    def _score_ragged(self, state: Tensor, successors: Tensor) -> tuple[Tensor, Tensor]:
        """States [N, A, 3] and successors [N, S, A, 3] -> logits [N, S], value [N]."""
        owner, slot = torch.nonzero(successors[..., 0, 0], as_tuple=True)
        logits, value = self.score(state, successors[owner, slot], owner)
        return logits.new_zeros(successors.shape[:2]).index_put((owner, slot), logits), value

    def _score_padded(self, state: Tensor, successors: Tensor) -> tuple[Tensor, Tensor]:
        """The same with sizes that do not depend on the data."""
        rows = torch.cat([state[:, None], successors], 1).long()
        atoms, present = rows.flatten(0, 1), rows.flatten(0, 1)[..., 0] > 0
        first, second = self.term(atoms[..., 1:]).unbind(-2)
        vectors = self.encode_state(self.encode_atom(self.predicate(atoms[..., 0]), first, second), present)
        policy = self.policy_head(self.trunk(vectors)).unflatten(0, rows.shape[:2])
        logits = (policy[:, :1] * policy[:, 1:]).sum(-1) / math.sqrt(policy.shape[-1])
        value = self.value_head(self.value_trunk(vectors.unflatten(0, rows.shape[:2])[:, 0])).squeeze(-1)
        return (logits + self._padded_bias(rows[:, 1:, 0])) * (successors[..., 0, 0] > 0), value

    def score(self, state: Tensor, successors: Tensor, owner: Tensor) -> tuple[Tensor, Tensor]:
        """States [N, A, 3], successors [M, A, 3] and the state of each [M] -> logits [M], value [N]."""
        rows = torch.cat([state, successors]).long()
        distinct, place = self.distinct(rows)
        vectors = self.embed(rows[distinct])
        policy = self.policy_head(self.trunk(vectors))
        here, there = policy[place[: len(state)]], policy[place[len(state) :]]
        logits = (here[owner] * there).sum(-1) / math.sqrt(there.shape[-1])
        value = self.value_head(self.value_trunk(vectors[place[: len(state)]])).squeeze(-1)
        return logits + self.bias(successors[:, 0].long()), value

    def distinct(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """One row number [U] for each distinct state of rows [M, A, 3], and for each row its place among these [M]."""
        codes = (rows.flatten(1) * self.multiplier).sum(1)
        unique, place = torch.unique(codes, return_inverse=True)
        # several rows may write to a place, but they are equal
        first = torch.empty_like(unique).scatter_(0, place, torch.arange(len(rows), device=rows.device))
        return first, place

    def embed(self, rows: Tensor) -> Tensor:
        """States [U, A, 3] -> [U, E]. Only goals that exist are looked up: most states have one or two."""
        present = rows[..., 0] > 0
        goals = rows[present]
        first, second = self.term(goals[:, 1:]).unbind(1)  # one look-up, so one gradient of the table's size
        encoded = self.encode_atom(self.predicate(goals[:, 0]), first, second)
        padded = encoded.new_zeros(*present.shape, encoded.shape[-1])
        return self.encode_state(padded.index_put(torch.nonzero(present, as_tuple=True), encoded), present)

    def bias(self, goals: Tensor) -> Tensor:
        """What the KGE model adds to the logits of successors with these first goals [M, 3]."""
        added, kge = torch.zeros(len(goals), device=goals.device), self._kge[0]
        if kge is None:
            return added
        regular, twin = self._scored(goals)
        if self.logit_bias and regular.any():
            score = KgeScores.apply(goals[regular], kge)
            added = added.masked_scatter(regular, self.logit_bias * score)
        if twin.any():
            score = KgeScores.apply(self._without_twin(goals[twin]), kge)
            added = added.masked_scatter(twin, score + self.twin_bias(score.unsqueeze(-1)).squeeze(-1))
        return added

    def _padded_bias(self, goals: Tensor) -> Tensor:
        """The same for goals [N, S, 3], with sizes that do not depend on the data."""
        kge = self._kge[0]
        if kge is None:
            return torch.zeros_like(goals[..., 0], dtype=torch.float32)
        regular, twin = self._scored(goals)
        triples = torch.where(twin[..., None], self._without_twin(goals), goals)
        score = KgeScores.apply(torch.where((regular | twin)[..., None], triples, 1), kge)
        of_twin = score + self.twin_bias(score.unsqueeze(-1)).squeeze(-1)
        return torch.where(twin, of_twin, torch.where(regular, self.logit_bias * score, 0.0))

    def _scored(self, goals: Tensor) -> tuple[Tensor, Tensor]:
        """Which goals [..., 3] a KGE model scores: ground ones of regular predicates [...], and twins [...]."""
        ground = (goals[..., 1:] <= self.num_constants).all(-1) & (goals[..., 1] > 0)
        return ground & (goals[..., 0] <= self.num_regular), ground & (goals[..., 0] > self.num_regular + 4)

    def _without_twin(self, goals: Tensor) -> Tensor:
        """Goals [..., 3] of twins as those of their regular predicates."""
        return torch.cat([goals[..., :1] - (self.num_regular + 4), goals[..., 1:]], -1)


class KgeScores(torch.autograd.Function):
    """Log-scores [...] of triples [..., 3] by a KGE model, which stays on the CPU; vmap is led around it."""

    @staticmethod
    def forward(triples: Tensor, kge: KGE) -> Tensor:
        score = kge.log_score_tensor(triples.reshape(-1, 3).cpu())
        return score.to(triples.device).reshape(triples.shape[:-1])

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Tensor, KGE], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: object, in_dims: tuple[int, None], triples: Tensor, kge: KGE) -> tuple[Tensor, int]:
        return KgeScores.apply(triples.movedim(in_dims[0], 0), kge), 0


def make_network(batch: KGBatch, options: NetworkOptions, hidden: tuple[int, ...]) -> ProofNetwork:
    """The network for the lanes of `batch`, with the widths of the agent's `hidden`."""
    kb, max_atoms, names = batch.data.kb, batch.options.max_atoms, batch.data.kb.vocabulary
    num_terms = names.num_term_ids(num_variables(kb, max_atoms))
    sizes = Sizes(names.num_predicate_ids, num_terms, names.num_constants, names.num_regular, max_atoms)
    return ProofNetwork(sizes, options, tuple(hidden), cast("KGE | None", batch.kge))
