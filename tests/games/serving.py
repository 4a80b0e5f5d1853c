"""A match on a server of its own, as a browser meets it."""

import json
import threading
import urllib.request
from contextlib import contextmanager

from shoal.games.lab.page import HOST, make_server


@contextmanager
def served(match):
    """The address of a server of this match."""
    server = make_server(match)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://{HOST}:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def post(address, body):
    """The answer to a step, whose action is `body`."""
    request = urllib.request.Request(f"{address}/step", data=body, method="POST")
    with urllib.request.urlopen(request) as response:
        return json.load(response)
