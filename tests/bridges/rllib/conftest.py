import pytest
import ray

from shoal.cluster.start import start_local


@pytest.fixture(scope="package")
def local_ray():
    """One Ray for all tests of RLlib's trainer."""
    with start_local(num_cpus=4):
        yield
    assert not ray.is_initialized()
