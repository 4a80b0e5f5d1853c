"""Expansion of B states at once, as `engine.resolve` does it for one."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.knowledge import KnowledgeBase
from shoal.worlds.kg.lanes.engine.tables import make_tables


class Candidates(NamedTuple):
    """Successors before any is dropped: rules in file order, then facts."""

    rows: Tensor  # [B, K, W, 3] canonical, zero-padded
    size: Tensor  # [B, K] goals; 0 is a proof
    valid: Tensor  # [B, K] bool: does it unify at all?
    dropped: Tensor  # [B] facts beyond `fact_cap`


class Expander(nn.Module):
    """Tables of a knowledge base as buffers, and the expansion that reads them."""

    first_start: Tensor
    first_anchor: Tensor
    first_other: Tensor
    second_start: Tensor
    second_other: Tensor
    rule_start: Tensor
    rule_head: Tensor
    rule_body: Tensor
    multiplier: Tensor
    keys: Tensor

    def __init__(self, kb: KnowledgeBase, max_atoms: int, *, fact_cap: int | None = None, bound_first: bool = False):
        super().__init__()
        largest = kb.facts.largest_buckets()[0]
        if fact_cap is not None and fact_cap < 1:
            raise ConfigError(f"fact_cap must be at least 1 or none, not {fact_cap}.")
        tables = make_tables(kb, max_atoms)
        self.max_atoms, self.bound_first = max_atoms, bound_first
        self.num_facts = min(largest, fact_cap or largest)
        self.num_rules = kb.rules.max_per_head
        self.num_constants, self.num_regular = tables.num_constants, tables.num_regular
        self.fresh, self.stride = tables.fresh, tables.stride
        read = {name: array for name, array in tables._asdict().items() if name in Expander.__annotations__}
        for name, array in {**read, "keys": kb.facts.keys}.items():
            self.register_buffer(name, torch.as_tensor(array, dtype=torch.int64))

    @property
    def num_candidates(self) -> int:
        """K."""
        return self.num_facts + self.num_rules

    def forward(self, state: Tensor, excluded: Tensor) -> Candidates:
        """Successors of live states [B, A, 3] whose queries [B, 3] do not count as facts."""
        goal, rest = self.select(state)
        by_rule, rule_valid = self.by_rules(goal, rest)
        by_fact, fact_valid, dropped = self.by_facts(goal, rest, excluded)
        by_fact = nn.functional.pad(by_fact, (0, 0, 0, by_rule.shape[2] - by_fact.shape[2]))
        rows, valid = torch.cat([by_rule, by_fact], 1), torch.cat([rule_valid, fact_valid], 1)
        alive = (rows[..., 0] > 0) & ~self.holds(rows, excluded[:, None, None])
        rows = compact(rows, alive)
        return Candidates(self.rename(rows), alive.sum(-1), valid, dropped)

    def select(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The goal to resolve [B, 3] and the others [B, A - 1, 3]."""
        chosen = torch.zeros_like(state[:, 0, 0])
        if self.bound_first:
            bound = (state[..., 0] > 0) & (state[..., 1:] <= self.num_constants).any(-1)
            chosen = bound.int().argmax(-1)
        goal = state.gather(1, chosen[:, None, None].expand(-1, 1, 3)).squeeze(1)
        place = torch.arange(self.max_atoms - 1, device=state.device).expand(len(state), -1)
        place = place + (place >= chosen[:, None])
        return goal, state.gather(1, place[..., None].expand(-1, -1, 3))

    def by_rules(self, goal: Tensor, rest: Tensor) -> tuple[Tensor, Tensor]:
        """Body and rest under the unifier of each rule: [B, R, W, 3], and which rules unify [B, R]."""
        p, s, t = (goal[:, i, None] for i in range(3))
        row = self.rule_start[p] + torch.arange(self.num_rules, device=goal.device)
        valid = row < self.rule_start[p + 1]
        row = row.clamp(max=max(0, len(self.rule_head) - 1))
        if not len(self.rule_head):
            return rest.new_zeros(len(goal), 0, self.max_atoms, 3), valid
        head, body = self.rule_head[row], self.rule_body[row]
        x, y = head[..., 1], head[..., 2]
        forced = (x == y) & (s != t)  # a repeated head variable makes the goal's arguments equal
        open_first, open_second = s > self.num_constants, t > self.num_constants
        valid = valid & ~(forced & ~open_first & ~open_second)
        old = torch.where(forced, torch.where(open_first, s, t), -1)
        new = torch.where(forced, torch.where(open_first, t, s), -1)
        first, second = torch.where(s == old, new, s), torch.where(t == old, new, t)
        terms = body[..., 1:]
        terms = torch.where(
            terms == x[..., None, None],
            first[..., None, None],
            torch.where(terms == y[..., None, None], second[..., None, None], terms + self.fresh),
        )
        others = rest[:, None, :, 1:]
        others = torch.where(others == old[..., None, None], new[..., None, None], others)
        names = rest[:, None, :, :1].expand(-1, self.num_rules, -1, -1)
        bodies = torch.cat([body[..., :1], terms * (body[..., :1] > 0)], -1)
        return torch.cat([bodies, torch.cat([names, others], -1)], 2), valid

    def by_facts(self, goal: Tensor, rest: Tensor, excluded: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rest under the binding of each fact [B, F, A - 1, 3], which unify [B, F], and how many were not seen [B]."""
        p, s, t = (goal[:, i, None] for i in range(3))
        n, key = self.num_constants, goal[:, :1].clamp(max=self.num_regular) * self.stride
        bound_first, bound_second = s <= n, t <= n
        anchor = torch.where(bound_first, s, torch.where(bound_second, t, 0)).clamp(max=n)
        by_second = ~bound_first & bound_second
        width = torch.where(bound_first | bound_second, 1, self.stride)
        low = torch.where(by_second, self.second_start[key + anchor], self.first_start[key + anchor])
        high = torch.where(by_second, self.second_start[key + anchor + width], self.first_start[key + anchor + width])
        high = torch.where(p <= self.num_regular, high, low)
        row = low + torch.arange(self.num_facts, device=goal.device)
        valid = row < high
        row = row.clamp(max=max(0, len(self.first_other) - 1))
        a = torch.where(by_second, self.second_other[row], self.first_anchor[row])
        b = torch.where(by_second, t, self.first_other[row])
        valid = valid & ~(bound_first & bound_second & (b != t)) & ~(~bound_first & (s == t) & (a != b))
        valid = valid & ~((p == excluded[:, :1]) & (a == excluded[:, 1:2]) & (b == excluded[:, 2:]))
        terms, is_variable = rest[:, None, :, 1:], rest[:, None, :, 1:] > n
        filled_first = is_variable & (terms == s[..., None, None])
        filled_second = is_variable & (terms == t[..., None, None])
        terms = torch.where(filled_first, a[..., None, None], torch.where(filled_second, b[..., None, None], terms))
        names = rest[:, None, :, :1].expand(-1, self.num_facts, -1, -1)
        dropped = (high - low - self.num_facts).clamp(min=0).squeeze(1)
        return torch.cat([names, terms], -1), valid, dropped

    def holds(self, atoms: Tensor, excluded: Tensor) -> Tensor:
        """Which atoms [..., 3] are ground facts other than `excluded` (which broadcasts)."""
        p, a, b = atoms.unbind(-1)
        ground = (a <= self.num_constants) & (b <= self.num_constants) & (p <= self.num_regular)
        if not len(self.keys):
            return torch.zeros_like(ground)
        key = torch.where(ground, (p * self.stride + a) * self.stride + b, -1)
        at = torch.searchsorted(self.keys, key).clamp(max=len(self.keys) - 1)
        return (self.keys[at] == key) & ~(atoms == excluded).all(-1)

    def rename(self, rows: Tensor) -> Tensor:
        """Variables of rows [..., W, 3] numbered by first appearance."""
        terms = rows[..., 1:].flatten(-2)  # [..., 2 W]
        variable = terms > self.num_constants
        first = (terms[..., None] == terms[..., None, :]).int().argmax(-1)  # first slot with the same term
        slot = torch.arange(terms.shape[-1], device=rows.device)
        order = ((first == slot) & variable).long().cumsum(-1)
        renamed = torch.where(variable, self.num_constants + order.gather(-1, first), terms)
        return torch.cat([rows[..., :1], renamed.unflatten(-1, (*rows.shape[-2:-1], 2))], -1)

    def fingerprint(self, rows: Tensor) -> Tensor:
        """64-bit codes [...] of canonical rows [..., W, 3], as the compiled engine computes them."""
        flat = rows.flatten(-2)
        return (flat * self.multiplier[: flat.shape[-1]]).sum(-1)


def compact(rows: Tensor, alive: Tensor) -> Tensor:
    """Move the goals of rows [..., W, 3] that are `alive` [..., W] to the left, keep their order, clear the others."""
    order = torch.argsort((~alive).int(), dim=-1, stable=True)
    moved = rows.gather(-2, order[..., None].expand(rows.shape))
    return moved * alive.gather(-1, order)[..., None]
