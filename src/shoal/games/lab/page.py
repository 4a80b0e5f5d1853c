"""Games of a person in a page on this machine. Nothing listens beyond the loopback address.

The page sends what the person does to `/step`; the lane lives in this process.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

from shoal.options import Values

HOST = "127.0.0.1"


class Match(Protocol):
    """Games of a person against somebody."""

    opponent: str
    """What the other one is called."""

    def page(self) -> str:
        """The page, complete in one file."""

    def step(self, action: object) -> Values:
        """What the page shows after the person's action; `ConfigError` for what is not one."""


def make_server(match: Match, port: int = 0) -> ThreadingHTTPServer:
    """A server of the page at `/` and of steps at `/step`; port 0 takes any free one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/":
                self._answer(200, "text/html; charset=utf-8", match.page().encode())
            else:
                self._answer(404, "text/plain", b"There is nothing here; the game is at /.")

        def do_POST(self) -> None:
            try:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer = json.dumps(match.step(json.loads(body)))
            except ValueError as error:  # ConfigError and broken JSON alike
                self._answer(400, "text/plain; charset=utf-8", str(error).encode())
            else:
                self._answer(200, "application/json", answer.encode())

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Fifty lines a second would help nobody."""

    Handler.protocol_version = "HTTP/1.1"  # keeps the connection, so that a step costs well under a millisecond
    return ThreadingHTTPServer((HOST, port), Handler)


def serve(match: Match) -> int:
    """Serve games until interrupted; returns the exit code."""
    with make_server(match) as server:
        address = f"http://{HOST}:{server.server_port}/"
        print(f"Play against {match.opponent} at {address} (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
