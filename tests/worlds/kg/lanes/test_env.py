from __future__ import annotations

import numpy as np
import pytest

import shoal
from shoal.errors import ActionError, ConfigError, StateError
from shoal.testing import assert_batch
from shoal.world import BatchOptions
from shoal.worlds.kg.lanes.data.dataset import Filters, Queries, load_dataset, load_folder
from shoal.worlds.kg.lanes.engine import expansions
from shoal.worlds.kg.lanes.env import KGBatch
from shoal.worlds.kg.lanes.options import EngineOptions, ProofOptions
from shoal.worlds.kg.lanes.queries import Asked
from tests.worlds.kg.lanes.data.test_dataset import COUNTRIES

TAIL = {"max_states": 20, "corruption": ("tail",)}


@pytest.fixture(scope="module")
def countries():
    return load_folder(COUNTRIES)


def random_walk(env: KGBatch, steps: int, seed: int = 0):
    """Random valid actions; yields (obs, reward, terminated, truncated, info) of every step."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    for _ in range(steps):
        yield env.step((rng.random(env.num_envs) * env.lanes.num_actions).astype(np.int64))


@pytest.mark.parametrize(
    "options",
    [{}, {"end_action": True, "skip_unary": True}, {"kge_action": True, "end_true_action": True, "memory": False}],
    ids=["plain", "skip and end", "kge and end true"],
)
def test_the_contract_is_kept(countries, options):
    def make(num_envs, **more):
        return KGBatch(num_envs, countries, ProofOptions(**TAIL, max_depth=6, **options), batch=BatchOptions(**more))

    assert_batch(make, num_envs=3, num_steps=12, max_examples=4)


def test_it_is_made_by_name_and_needs_no_files():
    env = shoal.make("kg", num_envs=3)
    obs, info = env.reset(seed=0)
    assert obs["sub_index"].shape == (3, 1, 6, 3)
    assert obs["derived_sub_indices"].shape == (3, 64, 6, 3)
    assert info["action_mask"].any(1).all()


@pytest.mark.parametrize("engine", ["compiled", "tensor"])
def test_masks_are_prefixes_and_ids_are_within_their_tables(countries, engine):
    env = KGBatch(16, countries, ProofOptions(**TAIL, end_action=True, kge_action=True), engine=EngineOptions(engine))
    for obs, _, _, _, info in random_walk(env, 60):
        mask = info["action_mask"]
        assert mask[:, 0].all()
        assert (mask[:, :-1] >= mask[:, 1:]).all()
        assert env.observation_space.contains(obs)
        present = obs["derived_sub_indices"][..., 0, 0] > 0
        assert np.array_equal(present, mask)


def test_padded_and_ragged_observations_agree(countries):
    env = KGBatch(9, countries, ProofOptions(**TAIL, end_action=True))
    for obs, _, _, _, info in random_walk(env, 20):
        ragged = env.ragged()
        assert np.array_equal(ragged.successors, obs["derived_sub_indices"][info["action_mask"]])
        assert np.array_equal(ragged.owner, np.nonzero(info["action_mask"])[0])
        assert np.array_equal(ragged.start, np.cumsum(ragged.count) - ragged.count)
        assert np.array_equal(ragged.state, obs["sub_index"][:, 0])


@pytest.mark.parametrize(
    "options",
    [
        {"memory": True, "skip_unary": True, "end_action": True},
        {"memory": False, "kge_action": True, "end_true_action": True},
        {"cut": "random", "max_states": 4, "selection": "bound_first"},
        {"cut": "first", "max_states": 3, "max_atoms": 3, "end_action": True},
    ],
)
def test_the_two_engines_take_the_same_path(options):
    data = load_dataset("families:1")
    made = ProofOptions(**{"max_depth": 8, "max_states": 40, **options})
    one = KGBatch(12, data, made)
    other = KGBatch(12, data, made, engine=EngineOptions("tensor"))
    for left, right in zip(random_walk(one, 40), random_walk(other, 40), strict=True):
        assert all(np.array_equal(left[0][key], right[0][key]) for key in left[0])
        assert all(np.array_equal(a, b) for a, b in zip(left[1:4], right[1:4], strict=True))
        for key in ("depth", "label", "query", "success", "n_successors", "n_cut", "n_skipped"):
            assert np.array_equal(left[4][key], right[4][key]), key


@pytest.mark.parametrize(
    "options",
    [
        {"memory": True, "end_action": True},
        {"memory": False, "max_states": 3},
        {"cut": "random", "max_states": 4, "skip_unary": True, "selection": "bound_first"},
    ],
)
@pytest.mark.parametrize("split", ["train", "test"])  # facts, which are excluded, and queries that are none
def test_kept_expansions_change_nothing(countries, options, split, monkeypatch):
    monkeypatch.setattr(expansions, "ENTRIES", 64)  # so small that everything is forgotten again and again
    made, queries = ProofOptions(**{**TAIL, "max_depth": 8, **options}), getattr(countries, split)
    plain, keeping = (
        KGBatch(6, countries, made, Asked(queries, "round_robin"), engine=EngineOptions(keep_expansions=keeps))
        for keeps in (False, True)
    )
    for left, right in zip(random_walk(plain, 60), random_walk(keeping, 60), strict=True):
        assert all(np.array_equal(left[0][key], right[0][key]) for key in left[0])
        for key in ("n_successors", "n_cut", "n_skipped", "success", "action_mask"):
            assert np.array_equal(left[4][key], right[4][key]), key
    assert keeping._fill.kept[0].used[2] > 0  # corruptions of training queries are no facts either


def test_threads_change_nothing(countries):
    one, two = (KGBatch(10, countries, ProofOptions(**TAIL), batch=BatchOptions(num_threads=n)) for n in (1, 2))
    for left, right in zip(random_walk(one, 30), random_walk(two, 30), strict=True):
        assert all(np.array_equal(left[0][key], right[0][key]) for key in left[0])
    two.close()


def test_a_random_policy_does_not_prove_training_queries_from_themselves(countries):
    env = KGBatch(64, countries, ProofOptions(**TAIL, end_action=True))
    proved = asked = 0
    for *_, info in random_walk(env, 120):
        if "final_info" in info:
            done = info["_final_info"] & (info["final_info"]["label"] == 1)
            asked += done.sum()
            proved += (done & info["final_info"]["success"]).sum()
    assert 0.05 < proved / asked < 0.15


def test_evaluation_asks_every_query_once_and_then_rests(countries):
    env = KGBatch(7, countries, ProofOptions(**TAIL), Asked(countries.test, "eval"))
    items = []
    for _, reward, terminated, truncated, info in random_walk(env, 200):
        done = terminated | truncated
        if done.any():
            items += info["final_info"]["item"][done].tolist()
        assert not reward[info["idle"] & ~done].any()
        if info["idle"].all():
            break
    assert sorted(items) == list(range(len(countries.test)))
    assert env.lanes.idle.all()


def test_a_pool_gives_the_next_query_to_whichever_lane_is_free(countries):
    env = KGBatch(5, countries, ProofOptions(**TAIL, end_action=True), Asked(countries.test, "pool"))
    items = []
    for _, _, terminated, truncated, info in random_walk(env, 200):
        done = terminated | truncated
        items += info["final_info"]["item"][done].tolist() if done.any() else []
    assert sorted(items) == list(range(len(countries.test)))


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_a_forbidden_action_is_refused_and_moves_nobody(countries, mode):
    env = KGBatch(4, countries, ProofOptions(**TAIL, max_depth=2), batch=BatchOptions(autoreset_mode=mode))
    env.reset(seed=0)
    before = env.get_state()
    with pytest.raises(ActionError, match=r"lane 1 is forbidden: 19\. Its action_mask allows 0 to \d+; no lane"):
        env.step(np.array([0, 19, 0, 0]))
    assert all(np.array_equal(value, before[name]) for name, value in env.get_state().items())
    while not env.lanes.ended.all() and mode == "next_step":
        env.step(np.zeros(4, np.int64))
    if mode == "next_step":
        env.step(np.full(4, 19))  # which only begins new episodes, whatever the action


def test_negatives_take_their_turn_and_are_not_known(countries):
    env = KGBatch(8, countries, ProofOptions(**TAIL, negative_ratio=2, max_depth=1))
    labels = []
    env.reset(seed=3)
    for _ in range(30):
        labels.append(env.lanes.label.copy())
        negative = env.lanes.label == 0
        assert not countries.known.contains(env.lanes.query[negative]).any()
        assert countries.known.contains(env.lanes.query[~negative]).all()
        env.step(np.zeros(8, np.int64))
    labels = np.array(labels)
    assert (labels[::3] == 1).all()
    assert labels.mean() < 0.5
    regions = {countries.kb.vocabulary.constant_id(r) for r in ("oceania", "asia", "europe", "africa", "americas")}
    assert set(env.lanes.query[:, 2].tolist()) <= regions


def test_depth_weights_are_a_curriculum(countries):
    env = KGBatch(32, countries, ProofOptions(**TAIL, negative_ratio=0, max_depth=1), Asked(depth_weights={2: 1.0}))
    env.reset(seed=0)
    assert set(env.lanes.query_depth.tolist()) == {2}
    env.set_depth_weights({3: 1.0, 2: 3.0})
    seen = np.concatenate([(env.step(np.zeros(32, np.int64)), env.lanes.query_depth.copy())[1] for _ in range(20)])
    assert set(seen.tolist()) == {2, 3}
    assert 0.6 < (seen == 2).mean() < 0.9
    with pytest.raises(ConfigError, match="leave no query"):
        env.set_depth_weights({99: 1.0})


class Scores:
    """A KGE model that likes large constants."""

    def log_score(self, triples):
        return -1.0 / triples[:, 2]


def test_shaping_pays_the_difference_of_potentials(countries):
    options = ProofOptions(**TAIL, max_depth=4, shaping=0.5, shaping_gamma=0.9, memory=False)
    plain = KGBatch(16, countries, ProofOptions(**TAIL, max_depth=4, memory=False))
    shaped = KGBatch(16, countries, options, kge=Scores())
    n = countries.kb.vocabulary.num_constants

    def potential(goals):
        ground = (goals[:, 0] <= 4) & (goals[:, 0] > 0) & (goals[:, 1:] <= n).all(1)
        return np.where(ground, -0.5 / np.maximum(goals[:, 2], 1), 0.0)

    before = potential(shaped.reset(seed=0)[0]["sub_index"][:, 0, 0])
    for one, two in zip(random_walk(plain, 30), random_walk(shaped, 30), strict=True):
        obs, reward, terminated, truncated, info = two
        after = potential(obs["sub_index"][:, 0, 0])
        following = after.copy()
        if "final_obs" in info:
            final = potential(info["final_obs"]["sub_index"][:, 0, 0])
            following = np.where(terminated, 0.0, np.where(truncated, final, after))
        assert np.allclose(reward - one[1], 0.9 * following - before, atol=1e-6)
        before = after


def test_a_cut_by_score_keeps_the_best_in_their_order(countries):
    wide = KGBatch(64, countries, ProofOptions(**TAIL))
    narrow = KGBatch(64, countries, ProofOptions(max_states=2, corruption=("tail",), cut="kge"), kge=Scores())
    wide.reset(seed=0), narrow.reset(seed=0)
    for env in (wide, narrow):
        env.step(np.zeros(64, np.int64))
    n, seen = countries.kb.vocabulary.num_constants, 0
    for lane in np.flatnonzero(narrow.lanes.n_cut > 0):
        rows = wide.lanes.successors[lane, : wide.lanes.num_actions[lane]]
        ground = (rows[:, 0, 1:] <= n).all(1)
        score = np.where(ground, -1.0 / rows[:, 0, 2], 0.0)
        best = np.sort(np.argsort(-score, kind="stable")[:2])
        assert np.array_equal(narrow.lanes.successors[lane], rows[best])
        seen += 1
    assert seen


def test_a_kge_action_closes_the_selected_goal(countries):
    env = KGBatch(1, countries, ProofOptions(**TAIL, kge_action=True), Asked(countries.test, "eval"))
    obs, info = env.reset(seed=0)
    last = int(info["action_mask"][0].sum()) - 1
    twin = obs["derived_sub_indices"][0, last, 0]
    vocabulary = countries.kb.vocabulary
    assert vocabulary.atom(twin) == vocabulary.atom(info["query"][0]).replace("(", "_kge(")
    _, _, terminated, _, info = env.step(np.array([last]))
    assert terminated[0]
    assert info["final_info"]["success"][0]


def test_too_small_a_width_is_told_once(countries):
    env = KGBatch(64, countries, ProofOptions(max_states=1, corruption=("tail",)))
    with pytest.warns(UserWarning, match=r"cut in \d+% .*max_states=1"):
        for _ in random_walk(env, 100):
            pass


@pytest.mark.parametrize(
    "options",
    [
        {"max_states": 1, "end_action": True},
        {"max_atoms": 0},
        {"max_depth": 0},
        {"reward_type": 6},
        {"corruption": ("tail", "head")},
        {"cut": "last"},
        {"selection": "rightmost"},
        {"negative_ratio": -1},
    ],
)
def test_bad_options_are_refused(options):
    with pytest.raises(ConfigError, match=next(reversed(options)) if "max_states" not in options else "max_states"):
        ProofOptions(**options)


def test_bad_batches_are_refused(countries):
    with pytest.raises(ConfigError, match="KGE model"):
        KGBatch(1, countries, ProofOptions(shaping=1.0))
    with pytest.raises(ConfigError, match="engine"):
        EngineOptions("fast")
    with pytest.raises(ConfigError, match="mode"):
        KGBatch(1, countries, asked=Asked(mode="test"))
    with pytest.raises(ConfigError, match="fact_cap"):
        KGBatch(1, countries, engine=EngineOptions("tensor", fact_cap=0))
    with pytest.raises(ConfigError, match="another vocabulary"):
        KGBatch(1, countries, asked=Asked(Queries(np.array([[99, 1, 1]]), np.zeros(1, np.int32))))
    small, large = (KGBatch(n, countries) for n in (1, 2))
    small.reset(seed=0), large.reset(seed=0)
    with pytest.raises(StateError, match="num_envs"):
        large.set_state(small.get_state())


def test_dropped_facts_are_counted():
    data = load_folder(COUNTRIES, filters=Filters(require_rule=False))
    env = KGBatch(4, data, ProofOptions(max_states=20), engine=EngineOptions("tensor", fact_cap=1))
    for _ in random_walk(env, 10):
        pass
    assert env._fill.dropped > 0
