from __future__ import annotations

import numpy as np
import pytest
import torch

from shoal.errors import ConfigError
from shoal.worlds.kg.lab.kge import train_kge
from shoal.worlds.kg.lab.network import make_network
from shoal.worlds.kg.lab.policy import BeamSearch, run_policy, segment_argmax, segment_log_softmax
from shoal.worlds.kg.lab.prover import Outcomes, Prover, exact_search
from shoal.worlds.kg.lab.ranking import Judge, rank_queries
from shoal.worlds.kg.lab.ranking_options import EvalConfig
from shoal.worlds.kg.lanes.data.corruptions import corrupt
from shoal.worlds.kg.lanes.data.dataset import Queries, load_dataset
from shoal.worlds.kg.lanes.env import KGBatch
from shoal.worlds.kg.lanes.kge.models import KGEConfig
from shoal.worlds.kg.lanes.options import ProofOptions
from shoal.worlds.kg.world import NetworkOptions

OPTIONS = ProofOptions(max_states=40, max_depth=4, end_action=True)


@pytest.fixture(scope="module")
def data():
    return load_dataset("families:2")


@pytest.fixture(scope="module")
def network(data):
    torch.manual_seed(0)
    return make_network(KGBatch(1, data, OPTIONS), NetworkOptions(embedding_size=16), (32, 32))


@pytest.fixture(scope="module")
def kge(data):
    return train_kge(data, KGEConfig(rank=16, epochs=10, batch_size=100))


def candidates(data, count=30, k=3):
    made = corrupt(data, data.test.triples[:count], "tail", k, np.random.default_rng(0))
    return np.concatenate([data.test.triples[:count], made.triples[made.valid]])


def test_segments_are_treated_one_by_one():
    logits, count = np.array([1.0, 2.0, 0.5, 3.0, 3.0, -1.0]), np.array([2, 1, 3])
    start = np.cumsum(count) - count
    log_prob = segment_log_softmax(logits, start, count)
    assert np.allclose(np.add.reduceat(np.exp(log_prob), start), 1)
    assert segment_argmax(logits, start, count).tolist() == [1, 0, 0]


def test_the_number_of_lanes_does_not_change_what_becomes_of_a_candidate(data, network):
    triples = candidates(data)
    few, many = (run_policy(network, data, OPTIONS, triples, num_envs=n) for n in (3, 64))
    assert np.array_equal(few.success, many.success)
    assert np.array_equal(few.length, many.length)
    assert np.allclose(few.log_prob, many.log_prob, atol=1e-4)


def test_a_policy_proves_nothing_that_exact_search_does_not(data, network):
    triples = candidates(data)
    exact = Prover(data.kb, max_atoms=OPTIONS.max_atoms).prove(triples, OPTIONS.max_depth)
    for found in (
        run_policy(network, data, OPTIONS, triples),
        run_policy(network, data, OPTIONS, triples, sample_seed=1),
        BeamSearch(network, data, OPTIONS, width=4)(triples),
    ):
        assert not (found.success & (exact < 0)).any()
        assert (found.length[found.success] >= exact[found.success]).all()
        assert (found.log_prob <= 1e-9).all()


def test_a_wide_beam_proves_whatever_can_be_proved(data, network):
    triples = candidates(data)
    options = ProofOptions(max_states=200, max_depth=2, end_action=True)
    exact = Prover(data.kb, max_atoms=options.max_atoms).prove(triples, 2)
    wide = BeamSearch(network, data, options, width=200)(triples)
    assert np.array_equal(wide.success, exact > 0)
    assert np.array_equal(wide.length[wide.success], exact[wide.success])
    narrow = BeamSearch(network, data, options, width=1, merge="max")(triples)
    assert narrow.success.sum() <= wide.success.sum()
    assert (narrow.log_prob[narrow.success] <= wide.log_prob[narrow.success] + 1e-6).all()


@pytest.mark.parametrize("corruptions", [10, None])
def test_hybrid_without_proof_weight_ranks_exactly_like_the_kge_model(data, network, kge, corruptions):
    def prove(triples, show):
        return run_policy(network, data, OPTIONS, triples)

    queries = data.test.where(slice(0, 25))
    neutral = {"kge_weight": 1.0, "rl_weight": 0.0, "fail_penalty": 0.0}
    hybrid = rank_queries(
        data, queries, EvalConfig(mode="hybrid", corruptions=corruptions, **neutral), prove=prove, kge=kge
    )
    alone = rank_queries(data, queries, EvalConfig(mode="kge_only", corruptions=corruptions), kge=kge)
    for side in ("head", "tail"):
        for name in ("mrr", "hits@1", "hits@3", "hits@10", "mean_rank", "auc_pr"):
            assert hybrid["sides"][side][name] == pytest.approx(alone["sides"][side][name], abs=1e-12)


def test_modes_score_as_the_table_says(data, kge):
    triples, valid = data.test.triples[:2, None], np.ones((2, 1), bool)

    def prove(rows, show):
        return Outcomes(np.array([-1.5, -0.5]), np.array([True, False]), np.array([2, 1]))

    k = kge.ranking_score(data.test.triples[:2])
    expected = {
        "rl_only": [-1.5, -100.5],
        "hybrid": [2 * k[0] - 1.5, 2 * k[1] - 100],
        "hybrid_bonus": [2 * k[0] + 1, 2 * k[1] - 0.5],
        "kge_only": k,
    }
    for mode, wanted in expected.items():
        side = Judge(EvalConfig(mode=mode), prove, kge)(triples, valid)
        assert np.allclose(side.score[:, 0], wanted, atol=1e-5)


def test_walks_add_their_score_to_hybrid(data, kge):
    triples, valid = data.test.triples[:2, None], np.ones((2, 1), bool)

    def prove(rows, show):
        return Outcomes(np.array([-1.5, 0.0]), np.array([True, False]), np.array([2, 0]))

    config = EvalConfig(mode="hybrid", kge_weight=1.0, rl_weight=2.0, fail_penalty=3.0, walk_weight=0.5)
    side = Judge(config, prove, kge, kge)(triples, valid)
    k, w = kge.ranking_score(data.test.triples[:2]), kge.logit(data.test.triples[:2])
    assert np.allclose(side.score[:, 0], [k[0] - 3.0 + 0.5 * w[0], k[1] - 3.0 + 0.5 * w[1]])


def test_symbolic_ranks_by_the_length_of_the_shortest_proof(data):
    options = ProofOptions(max_depth=3)
    result = rank_queries(
        data, data.test, EvalConfig(mode="symbolic", corruptions=20), prove=exact_search(data.kb, options)
    )
    exact = Prover(data.kb, max_atoms=options.max_atoms).prove(data.test.triples, 3)
    assert result["recall"] == pytest.approx((exact > 0).mean())
    assert result["mrr"] > 0.5
    assert set(result["proved_by_predicate"]) == {
        data.kb.vocabulary.predicates[p] for p in np.unique(data.test.triples[:, 0])
    }


def test_only_the_best_candidates_are_given_to_the_prover(data, kge):
    asked = []

    def prove(rows, show):
        asked.append(len(rows))
        return Outcomes(np.zeros(len(rows)), np.ones(len(rows), bool), np.ones(len(rows), int))

    rank_queries(data, data.test, EvalConfig(mode="hybrid", prove_top=2, sides=("tail",)), prove=prove, kge=kge)
    assert sum(asked) == 2 * len(data.test)


def test_progress_rises_to_one(data, network, kge):
    def prove(rows, show):
        return run_policy(network, data, OPTIONS, rows, num_envs=8, show=show)

    shares: list[float] = []
    rank_queries(
        data, data.test, EvalConfig(mode="hybrid", corruptions=5), prove=prove, kge=kge, progress=shares.append
    )
    assert len(shares) > 10
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_the_same_seed_draws_the_same_corruptions(data, kge):
    one, two = (rank_queries(data, data.test, EvalConfig(mode="kge_only", corruptions=5), kge=kge) for _ in range(2))
    other = rank_queries(data, data.test, EvalConfig(mode="kge_only", corruptions=5, seed=1), kge=kge)
    assert one == two
    assert one["mrr"] != other["mrr"]


def test_bad_requests_are_refused(data, kge):
    with pytest.raises(ConfigError, match="mode"):
        EvalConfig(mode="guess")
    with pytest.raises(ConfigError, match="sides"):
        EvalConfig(sides=("top",))
    with pytest.raises(ConfigError, match="KGE model"):
        rank_queries(data, data.test, EvalConfig(mode="hybrid"), prove=lambda rows, show: None)
    with pytest.raises(ConfigError, match="needs a prover"):
        rank_queries(data, data.test, EvalConfig(mode="rl_only"))
    empty = Queries(np.zeros((0, 3), np.int32), np.zeros(0, np.int32))
    with pytest.raises(ConfigError, match="no query"):
        rank_queries(data, empty, EvalConfig(mode="kge_only"), kge=kge)
