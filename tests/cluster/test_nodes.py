"""A cluster of several nodes on this machine, one of which dies in the middle of training."""

import threading

import pytest
import ray
from ray.cluster_utils import Cluster

import shoal
from shoal.training.hooks import Hooks
from tests.cluster.slow import hold, wait_until_held
from tests.cluster.test_fleet import SMALL

MEMORY = {"object_store_memory": 100 * 2**20}


@pytest.fixture
def cluster():
    """A head that only keeps the books, and three nodes with room for one runner each."""
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **MEMORY})
    nodes.workers = [nodes.add_node(num_cpus=1, wait=False, **MEMORY) for _ in range(3)]
    nodes.wait_for_nodes(timeout=600)
    yield nodes
    nodes.shutdown()
    assert not ray.is_initialized()


class LoseANode:
    """Takes the second runner's node away while the next rollout is being collected."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder, self.places = cluster, folder, []

    def after_iteration(self, loop):
        self.places.append([ray.get(runner.ready.remote()) for runner in loop.batch.runners])
        if loop.iteration == 2:
            lost = next(node for node in self.cluster.workers if node.node_id == self.places[-1][1])
            hold(self.folder, ray.get(loop.batch.runners[1].pid.remote()))
            threading.Thread(target=self.lose, args=(lost,), daemon=True).start()

    def lose(self, node):
        wait_until_held(self.folder)
        self.cluster.remove_node(node, False)


@pytest.mark.slow
def test_a_lost_node_costs_one_fragment(cluster, tmp_path):
    lose, env = LoseANode(cluster, tmp_path), {"backend": "serial", "env_kwargs": {"folder": str(tmp_path)}}
    settings = {**SMALL, "total_steps": 8 * 16 * 5}
    result = shoal.train(
        "tests.cluster.slow:HeldWalk", runs_dir=tmp_path / "runs", hooks=Hooks(callbacks=(lose,)), runners=2,
        ray_address=cluster.address, env=env, **settings,
    )  # fmt: skip
    assert result.metrics["step"] == settings["total_steps"]
    assert result.metrics["runners/restarts"] >= 1
    first, last = lose.places[0], lose.places[-1]
    assert first[0] != first[1]  # on two nodes
    assert last[0] == first[0]
    assert last[1] not in first  # the second one on the node that was free
