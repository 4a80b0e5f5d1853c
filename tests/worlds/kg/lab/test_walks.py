"""Walks: their weight, its gradient, what is hidden, and that they predict."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch

from shoal.worlds.kg.lab.kge import train_kge
from shoal.worlds.kg.lab.ranking import rank_queries
from shoal.worlds.kg.lab.ranking_options import EvalConfig
from shoal.worlds.kg.lanes.data.dataset import Dataset, Filters, load_dataset
from shoal.worlds.kg.lanes.data.knowledge import FactIndex
from shoal.worlds.kg.lanes.kge.models import usual_config
from shoal.worlds.kg.lanes.kge.saved import load_kge, save_kge
from shoal.worlds.kg.lanes.kge.scoring import KGE
from shoal.worlds.kg.lanes.kge.walk_model import WalkModel

TRIPLES = np.array([[1, 1, 2], [1, 2, 3], [2, 1, 3], [2, 3, 4], [1, 4, 1], [2, 5, 4]])
LENGTH = 3


@pytest.fixture
def model() -> WalkModel:
    torch.manual_seed(3)
    made = WalkModel(FactIndex(TRIPLES, 2, 5), 2, LENGTH)
    made.profile.data.normal_(generator=torch.Generator().manual_seed(0))
    return made.double()


def walk_weight(model: WalkModel, p: int, head: int, tail: int, hidden: bool = False) -> float:
    """The sum over all walks of 1..LENGTH edges, one by one."""
    step, first, last = (x.detach().exp()[p].numpy() for x in (model.log_step, model.log_first, model.log_last))
    P = model.num_relations
    edges = [(h, r, t) for r, h, t in TRIPLES.tolist()] + [(t, r + P, h) for r, h, t in TRIPLES.tolist()]
    counts, share = model.counts.numpy(), {}
    for h, r, t in edges:
        share[h, r, t] = 1 / np.sqrt(counts[h, r] * counts[t, r + P if r <= P else r - P])
    if hidden:
        edges = [edge for edge in edges if edge not in ((head, p, tail), (tail, p + P, head))]
    total = 0.0
    for length in range(1, LENGTH + 1):
        for walk in product(edges, repeat=length):
            linked = all(one[2] == two[0] for one, two in pairwise(walk))
            if linked and walk[0][0] == head and walk[-1][2] == tail:
                weight = first
                for edge in walk:
                    weight = weight @ step[edge[1]] * share[edge]
                total += float(weight @ last)
    return total


def reached(model: WalkModel, p: int, head: int, tail: int, hidden: bool = False) -> float:
    """The same by the model: its score without floor and profiles."""
    model.profile.data.zero_()
    target = torch.tensor([tail])
    score = model(torch.tensor([head]), torch.tensor([p]), target[None], hidden=target if hidden else None)
    return float(score.detach().exp() - model.log_floor[p].detach().exp())


@pytest.mark.parametrize("hidden", [False, True])
def test_weights_are_sums_over_walks(model: WalkModel, hidden: bool) -> None:
    for p, head, tail in product((1, 2), (1, 2, 5), (1, 3, 4)):
        assert reached(model, p, head, tail, hidden) == pytest.approx(walk_weight(model, p, head, tail, hidden), 1e-5)


def test_a_hidden_fact_is_not_walked_on(model: WalkModel) -> None:
    assert reached(model, 1, 1, 2) > reached(model, 1, 1, 2, hidden=True)


def test_a_hidden_fact_does_not_show_in_the_profile_of_its_end(model: WalkModel) -> None:
    """A tail that has only the hidden edge looks like one without any."""
    with torch.no_grad():
        model.profile[1, 1, 0, 1 + model.num_relations] = 50.0
        target = torch.tensor([2])  # its only incoming edge of relation 1 is the one from entity 1
        seen, unseen = (
            model(torch.tensor([1]), torch.tensor([1]), target[None], hidden=h).item() for h in (None, target)
        )
    assert seen - unseen > 40


def test_both_ends_see_the_same(model: WalkModel) -> None:
    head, tail, p = torch.tensor([1, 2, 5]), torch.tensor([3, 4, 1]), torch.tensor([1, 2, 2])
    with torch.no_grad():
        forward = model(head, p, tail[:, None])[:, 0] + model.anchor_score(head, p)
        backward = model(tail, model.inverse(p), head[:, None])[:, 0] + model.anchor_score(tail, model.inverse(p))
    torch.testing.assert_close(forward, backward, rtol=1e-5, atol=1e-5)


def test_gradients_are_those_of_finite_differences(model: WalkModel) -> None:
    anchor, relation = torch.tensor([1, 4, 3]), torch.tensor([1, 2, 4])
    candidates, hidden = torch.tensor([[2, 3, 4], [1, 5, 2], [1, 5, 2]]), torch.tensor([2, 1, 1])

    def loss() -> torch.Tensor:
        return torch.log_softmax(model(anchor, relation, candidates, hidden=hidden), 1)[:, 0].sum()

    loss().backward()
    for parameter in (model.log_step, model.log_first, model.log_last, model.log_floor, model.profile):
        assert parameter.grad is not None
        place = int(parameter.grad.abs().argmax())
        slope, flat = float(parameter.grad.view(-1)[place]), parameter.data.view(-1)
        with torch.no_grad():
            flat[place] += 1e-4
            up = loss()
            flat[place] -= 2e-4
            down = loss()
            flat[place] += 1e-4
        assert float(up - down) / 2e-4 == pytest.approx(slope, rel=1e-3)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_dataset("families", filters=Filters(require_rule=False))


@pytest.fixture(scope="module")
def trained(data: Dataset) -> KGE:
    return train_kge(data, usual_config("walks", walk_length=3, num_negatives=20, epochs=12))


def test_walks_predict_family_relations(data: Dataset, trained: KGE) -> None:
    result = rank_queries(data, data.test, EvalConfig(mode="kge_only"), kge=trained)
    assert result["mrr"] > 0.7


def test_all_ways_to_ask_agree(data: Dataset, trained: KGE) -> None:
    p, h, t = data.test.triples[:5].T
    raw = trained.raw_score(data.test.triples[:5])
    rows = np.arange(5)
    ids = [torch.as_tensor(x).long() for x in (p, h, t)]
    tails, heads = trained.model.raw_tails(ids[1], ids[0]), trained.model.raw_heads(ids[0], ids[2])
    np.testing.assert_allclose(tails.numpy()[rows, t - 1], raw, rtol=1e-4)
    np.testing.assert_allclose(heads.numpy()[rows, h - 1], raw, rtol=1e-4)


def test_saving_keeps_the_scores(data: Dataset, trained: KGE, tmp_path) -> None:
    again = load_kge(save_kge(trained, tmp_path), data.kb.vocabulary)
    np.testing.assert_array_equal(again.ranking_score(data.test.triples), trained.ranking_score(data.test.triples))
