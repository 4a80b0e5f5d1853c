"""The policy: how well does a successor fit the state? A shared trunk encodes both; similarities are the logits.

The forward pass is ragged: only actions that exist are encoded, and each distinct state of the batch once.
N observations with M actions in all, of which U states are distinct.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from shoal.errors import ConfigError
from shoal.vector.seeding import mix
from shoal.worlds.kg.encoders import AtomEncoder, StateEncoder
from shoal.worlds.kg.engine.tables import num_variables

TWIN_HIDDEN = 32


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


class ProofNetwork(nn.Module):
    """Actor and critic for `KGBatch`; see `shoal.agents.networks.Network`.

    Args:
        num_predicates, num_terms: rows of the embedding tables, i.e. the largest ids plus one.
        num_constants, num_regular: ids above these are variables, and ends of proofs or twins.
        hidden: width of the trunk, repeated once per layer.
        kge: a model whose scores enter: twins' logits get an MLP of their log-score, and with `logit_bias` every
            successor's logit gets that much of the log-score of its first goal, if that is ground.
    """

    state_size = 0
    multiplier: Tensor

    def __init__(
        self,
        num_predicates: int,
        num_terms: int,
        num_constants: int,
        num_regular: int,
        max_atoms: int,
        *,
        embedding_size: int = 64,
        hidden: tuple[int, ...] = (128, 128),
        atom_encoder: str = "transe",
        state_encoder: str = "mean",
        logit_bias: float = 0.0,
        kge: Any = None,
    ) -> None:
        super().__init__()
        if len(set(hidden)) != 1:
            raise ConfigError(f"hidden={hidden}: residual blocks need one width for all layers, e.g. (128, 128).")
        if logit_bias and kge is None:
            raise ConfigError("logit_bias asks a KGE model, but none was given. Pass kge=...")
        E, H = embedding_size, hidden[0]
        self.num_constants, self.num_regular, self.logit_bias = num_constants, num_regular, logit_bias
        self.predicate, self.term = (nn.Embedding(rows, E, padding_idx=0) for rows in (num_predicates, num_terms))
        # constants that training never asks about stay as they are: small, so that they do not tip the scales
        for table, scale in ((self.predicate, 1.0), (self.term, 0.1)):
            nn.init.normal_(table.weight, std=scale / math.sqrt(E))
            nn.init.zeros_(table.weight[0])
        self.encode_atom, self.encode_state = AtomEncoder(atom_encoder, E), StateEncoder(state_encoder, E, max_atoms)
        self.trunk, self.value_trunk = (Trunk(E, H, len(hidden) - 1) for _ in range(2))
        self.policy_head = nn.Sequential(nn.Linear(H, H), nn.ReLU(), nn.Linear(H, E))
        self.value_head = nn.Sequential(nn.Linear(H, H), nn.ReLU(), nn.Linear(H, 1))
        self.twin_bias = nn.Sequential(nn.Linear(1, TWIN_HIDDEN), nn.ReLU(), nn.Linear(TWIN_HIDDEN, 1))
        self._kge = [kge]  # in a list, so that its weights are not ours to train or save
        slots = torch.arange(3 * max_atoms).numpy().astype("uint64")
        self.register_buffer("multiplier", torch.from_numpy(mix(slots).view("int64") | 1), persistent=False)

    def forward(self, obs: dict[str, Tensor], state: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Padded observation -> logits [N, S], value [N]."""
        successors = obs["derived_sub_indices"]
        owner, slot = torch.nonzero(successors[..., 0, 0], as_tuple=True)
        logits, value = self.score(obs["sub_index"][:, 0], successors[owner, slot], owner)
        padded = logits.new_zeros(successors.shape[:2])
        return padded.index_put((owner, slot), logits), value, state

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
        added = torch.zeros(len(goals), device=goals.device)
        kge = self._kge[0]
        if kge is None:
            return added
        ground = (goals[:, 1:] <= self.num_constants).all(1) & (goals[:, 1] > 0)
        regular = ground & (goals[:, 0] <= self.num_regular)
        twin = ground & (goals[:, 0] > self.num_regular + 4)
        if self.logit_bias and regular.any():
            added = added.masked_scatter(regular, self.logit_bias * kge.log_score_tensor(goals[regular]))
        if twin.any():
            closed = goals[twin] - torch.tensor([self.num_regular + 4, 0, 0], device=goals.device)
            score = kge.log_score_tensor(closed)
            added = added.masked_scatter(twin, score + self.twin_bias(score.unsqueeze(-1)).squeeze(-1))
        return added


def make_network(batch: Any, config: Any) -> ProofNetwork:
    """The network for a `KGBatch`, with the widths of the agent's `hidden`."""
    vocabulary, options = batch.data.kb.vocabulary, batch.options
    return ProofNetwork(
        vocabulary.num_predicate_ids,
        vocabulary.num_term_ids(num_variables(batch.data.kb, options.max_atoms)),
        vocabulary.num_constants,
        vocabulary.num_regular,
        options.max_atoms,
        hidden=tuple(config.hidden),
        kge=batch.kge,
        **batch.network_settings,
    )
