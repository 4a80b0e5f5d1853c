from __future__ import annotations

import numpy as np
import pytest
import torch

from shoal.errors import ConfigError, UnknownName
from shoal.worlds.kg.lab.kge import RowAdagrad, predict_facts, train_kge, write_soft_facts
from shoal.worlds.kg.lab.ranking import rank_queries
from shoal.worlds.kg.lab.ranking_options import EvalConfig
from shoal.worlds.kg.lanes.data.dataset import load_dataset, load_folder
from shoal.worlds.kg.lanes.kge.models import MODELS, KGEConfig, OwnModel, make_model
from shoal.worlds.kg.lanes.kge.pykeen_adapter import from_pykeen
from shoal.worlds.kg.lanes.kge.saved import load_kge, save_kge
from tests.worlds.kg.lanes.data.test_dataset import COUNTRIES, write

SMALL = KGEConfig(rank=24, epochs=25, batch_size=100, regulariser=3e-3)


@pytest.fixture(scope="module")
def data():
    return load_dataset("families:2")


@pytest.fixture(scope="module")
def kge(data):
    return train_kge(data, SMALL)


@pytest.mark.parametrize("name", MODELS)
def test_scores_of_triples_and_of_all_entities_agree(name):
    torch.manual_seed(0)
    own = OwnModel(make_model(name, 7, 3, 4), KGEConfig())
    p, h, t = torch.tensor([1, 2, 3]), torch.tensor([1, 5, 7]), torch.tensor([2, 2, 6])
    triples = own.raw(torch.stack([p, h, t], 1))
    row = torch.arange(3)
    assert torch.allclose(own.raw_tails(h, p)[row, t - 1], triples, atol=1e-5)
    assert torch.allclose(own.raw_heads(p, t)[row, h - 1], triples, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_learns_who_is_related(data, name):
    rate = 0.05 if name == "rotate" else 0.1
    config = KGEConfig(model=name, rank=24, epochs=25, batch_size=100, regulariser=3e-3, lr=rate)
    trained = train_kge(data, config)
    result = rank_queries(data, data.test, EvalConfig(mode="kge_only", corruptions=None), kge=trained)
    assert result["mrr"] > 0.4, "chance is below 0.1"


def test_rows_that_a_batch_does_not_use_need_not_be_touched():
    torch.manual_seed(0)
    table, rows, grad = torch.randn(6, 3), torch.tensor([4, 1]), torch.randn(2, 3)
    dense = torch.nn.Parameter(table.clone())
    whole, ours = torch.optim.Adagrad([dense], lr=0.3), RowAdagrad(table.clone(), 0.3)
    for _ in range(3):
        dense.grad = torch.zeros(6, 3).index_copy(0, rows, grad)
        whole.step()
        ours.step(rows, grad)
    assert torch.allclose(ours.table, dense, atol=1e-6)


def test_a_sampled_softmax_learns_too(data):
    config = KGEConfig(rank=24, epochs=25, batch_size=100, regulariser=3e-3, num_negatives=20)
    result = rank_queries(data, data.test, EvalConfig(mode="kge_only"), kge=train_kge(data, config))
    assert result["mrr"] > 0.4


def test_training_repeats_by_seed(data):
    short = KGEConfig(rank=4, epochs=2)
    one, two = (train_kge(data, short).raw_score(data.test.triples) for _ in range(2))
    assert np.array_equal(one, two)


def test_scores_are_calibrated_probabilities(data, kge):
    true = np.exp(kge.log_score(data.valid.triples))
    wrong = data.valid.triples.copy()
    wrong[:, 1] = np.roll(wrong[:, 1], 7)
    wrong = wrong[~data.known.contains(wrong)]
    assert ((true > 0) & (true < 1)).all()
    assert true.mean() > 0.5 > np.exp(kge.log_score(wrong)).mean()
    assert (kge.log_score(wrong) >= np.log(1e-9) - 1e-5).all()


def test_saving_and_loading_changes_nothing(tmp_path, data, kge):
    again = load_kge(save_kge(kge, tmp_path / "model"), data.kb.vocabulary)
    assert np.array_equal(again.log_score(data.test.triples), kge.log_score(data.test.triples))


def test_a_model_of_another_vocabulary_is_refused(tmp_path, kge):
    folder = save_kge(kge, tmp_path / "model")
    with pytest.raises(ConfigError, match="another vocabulary"):
        load_kge(folder, load_folder(COUNTRIES).kb.vocabulary)
    with pytest.raises(ConfigError, match="no KGE model"):
        load_kge(tmp_path, load_folder(COUNTRIES).kb.vocabulary)


def test_bad_requests_are_refused(data, kge):
    with pytest.raises(UnknownName, match="complex"):
        make_model("complx", 3, 1, 2)
    with pytest.raises(ConfigError, match="rank"):
        KGEConfig(rank=0)
    with pytest.raises(ConfigError, match="ids outside"):
        kge.log_score(np.array([[1, 1, data.kb.vocabulary.num_constants + 1]]))


def test_predicted_facts_leak_nothing_of_the_held_out_splits(data, kge):
    triples, score, rank = predict_facts(kge, data, top_k=3, threshold=0.3)
    assert len(triples) > 10
    assert not data.known.contains(triples).any()
    assert (score > 0.3).all()
    assert set(rank.tolist()) <= {1, 2, 3}
    assert (np.diff(score) <= 0).all()


def test_predicted_facts_are_read_back_as_facts(tmp_path):
    folder = write(tmp_path, train="p(a,b)\np(b,a)\nq(a,b)\nq(b,a)\np(c,d)\np(d,c)\nq(c,d)\n", valid="p(a,c)\n")
    data = load_folder(folder)
    model = train_kge(data, KGEConfig(rank=4, epochs=40, regulariser=0.0))
    number = write_soft_facts(folder / "soft.txt", model, data, top_k=1, threshold=0.0)
    again = load_folder(folder, soft_facts="soft.txt")
    assert number > 0
    assert len(again.kb.facts) == len(data.kb.facts) + number


def test_a_pykeen_model_is_asked_in_our_ids_and_ranked_as_pykeen_does():
    pytest.importorskip("pykeen")
    from pykeen.datasets import Nations
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import DistMult
    from pykeen.triples import TriplesFactory

    source = Nations()
    torch.manual_seed(0)
    model = DistMult(triples_factory=source.training, embedding_dim=8)
    data = load_dataset("pykeen:nations", rules=_one_rule())
    kge = from_pykeen(model, source.training, data.kb.vocabulary)
    triples = data.test.triples
    names = [data.kb.vocabulary.atom(t) for t in triples]
    labels = [(n.split("(")[1].split(",")[0], n.split("(")[0], n[:-1].split(",")[1]) for n in names]
    mapped = TriplesFactory.from_labeled_triples(
        np.array(labels), entity_to_id=source.entity_to_id, relation_to_id=source.relation_to_id
    ).mapped_triples
    assert np.allclose(
        np.sort(kge.raw_score(triples)), np.sort(model.score_hrt(mapped).detach().numpy()[:, 0]), atol=1e-5
    )
    ours = rank_queries(data, data.test, EvalConfig(mode="kge_only", corruptions=None), kge=kge)
    theirs = RankBasedEvaluator().evaluate(
        model,
        mapped_triples=source.testing.mapped_triples,
        additional_filter_triples=[source.training.mapped_triples, source.validation.mapped_triples],
        use_tqdm=False,
    )
    assert ours["mrr"] == pytest.approx(theirs.get_metric("both.realistic.inverse_harmonic_mean_rank"), abs=1e-6)
    assert ours["hits@3"] == pytest.approx(theirs.get_metric("both.realistic.hits_at_3"), abs=1e-6)


def _one_rule():
    from pathlib import Path

    return Path(__file__).parent / "nations_rules.txt"


def test_a_pykeen_model_of_other_data_is_refused():
    pytest.importorskip("pykeen")
    from pykeen.datasets import Nations
    from pykeen.models import DistMult

    source = Nations()
    with pytest.raises(ConfigError, match="none of these"):
        from_pykeen(DistMult(triples_factory=source.training), source.training, load_dataset().kb.vocabulary)
