"""Finding Ray, or saying soon that there is none."""

import socket
import sys
import threading

import pytest

from shoal.cluster.start import CONNECT_S, connect, import_ray, start_local
from shoal.errors import ConfigError, MissingExtra, RunError


@pytest.fixture(autouse=True)
def no_ray(monkeypatch):
    """Ray itself would wait for more than half a minute for somebody who does not answer."""
    monkeypatch.setattr("ray.init", lambda **options: pytest.fail("Ray was asked"))


def test_nobody_at_the_address_is_said_soon():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]  # bound, but nobody listens
        with pytest.raises(ConfigError, match="Nobody answers"):
            connect(f"127.0.0.1:{port}")


def test_a_listener_that_is_no_cluster_is_said_within_15_seconds(monkeypatch):
    assert CONNECT_S < 15
    monkeypatch.setattr("shoal.cluster.start.CONNECT_S", 0.1)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()  # and never says a word
        with pytest.raises(ConfigError, match="Nobody answers"):
            connect(f"127.0.0.1:{other.getsockname()[1]}")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\0\0\0\4\0\0\0\0\0" + b"\0\0\1\1\5\0\0\0\1\x8d",  # HTTP/2: settings, then status 404
    ],
)
def test_another_server_is_no_cluster(answer):
    def serve():
        there, _ = other.accept()
        there.recv(1000)
        there.sendall(answer)
        there.close()

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        server = threading.Thread(target=serve)
        server.start()
        with pytest.raises(ConfigError, match="not a Ray cluster"):
            connect(f"127.0.0.1:{other.getsockname()[1]}")
        server.join()


def test_no_address_at_all():
    with pytest.raises(ConfigError, match="HOST:PORT"):
        connect("somewhere")


@pytest.mark.parametrize("failures", [1, 2])
def test_a_slow_start_is_tried_once_more(monkeypatch, failures):
    calls = []

    def init(**options):
        calls.append(options["num_cpus"])
        if len(calls) <= failures:
            raise Exception("The current node timed out during startup.\nAnd more.")

    monkeypatch.setattr("ray.init", init)
    if failures == 1:
        with start_local(num_cpus=3):
            assert calls == [3, 3]
    else:
        with pytest.raises(RunError, match=r"too busy: The current node timed out during startup\.$"), start_local(3):
            pass


def test_without_ray_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"--runners needs ray.*shoal\[ray\]"):
        import_ray("--runners")
