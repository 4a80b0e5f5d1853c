"""Is there a Ray at this address? Its servers speak gRPC, which is asked here with a plain socket.

Ray itself waits for more than half a minute for somebody who does not answer, or answers something else.
"""

from __future__ import annotations

import socket
import struct

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADERS, _SETTINGS = 1, 4  # kinds of frames
_END = 0x5  # flags of a request that is whole with its headers
_STATUS_200 = 0x88  # how HPACK writes ":status: 200", with which every gRPC server answers everything


def speaks_grpc(host: str, port: int, timeout_s: float) -> bool:
    """Whether a gRPC server answers; `OSError` if nobody does within `timeout_s`."""
    with socket.create_connection((host, port), timeout=timeout_s) as there:
        headers = _frame(_HEADERS, _END, 1, _request_headers(f"{host}:{port}"))
        there.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b"") + headers)
        stream = there.makefile("rb")
        for _ in range(10):  # settings and the like come before
            head = stream.read(9)
            if len(head) < 9:
                return False
            kind, payload = head[3], stream.read(int.from_bytes(head[:3], "big"))
            if kind == _HEADERS:
                return payload[:1] == bytes([_STATUS_200])
            if kind > 9:  # no frame of HTTP/2
                return False
    return False


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _request_headers(authority: str) -> bytes:
    """A call that no server has, in HPACK: numbers stand for the names and values of its static table."""
    method_post, scheme_http = b"\x83", b"\x86"
    authority_name, path_name, content_type_name, new_name = b"\x01", b"\x04", b"\x0f\x10", b"\0"
    return b"".join(
        (
            method_post,
            scheme_http,
            path_name + _text("/shoal/hello"),
            authority_name + _text(authority),
            content_type_name + _text("application/grpc"),
            new_name + _text("te") + _text("trailers"),
        )
    )


def _text(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()
