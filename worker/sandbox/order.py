"""The order for one run, and how it and its report travel between the worker and the run's supervisor.

A message is a 4-byte header length, a JSON header that lists the sizes of the blobs, then the blobs. Descriptors travel with
the first byte. Both ends are trusted: nothing that a sandboxed program writes is parsed here, it only ever is a blob.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .outcome import Limits

LENGTH = struct.Struct("<I")
MOST_DESCRIPTORS = 16
Header = dict[str, Any]
"""A message without its blobs, written and read by this package alone."""


class PeerGone(Exception):  # noqa: N818 - for whoever waits for a message this is an event
    """The other end closed its socket within or before a message."""


@dataclass(frozen=True)
class Order:
    """What to run and behind which layers.

    argv: the command; None: execute `program` in this very interpreter (a session). visible: pairs of a real path and the
    path it is seen at, both absolute. layers: names of layers.py; each of them must hold, or the run is refused.
    uid: the user to become where the layer `uid` is asked for.
    """

    argv: list[str] | None
    limits: Limits
    layers: list[str]
    uid: int
    environment: dict[str, str]
    visible: list[list[str]]
    collect: list[str]
    files: dict[str, bytes]
    stdin: bytes
    program: bytes

    def encode(self) -> tuple[Header, list[bytes]]:
        header = {
            "argv": self.argv,
            "limits": asdict(self.limits),
            "layers": self.layers,
            "uid": self.uid,
            "environment": self.environment,
            "visible": self.visible,
            "collect": self.collect,
            "files": list(self.files),
        }
        return header, [self.stdin, self.program, *self.files.values()]

    @classmethod
    def decode(cls, header: Header, blobs: list[bytes]) -> Order:
        stdin, program, *contents = blobs
        stated = {**header, "limits": Limits(**header["limits"])}
        stated["files"] = dict(zip(header["files"], contents, strict=True))
        del stated["blobs"]
        return cls(**stated, stdin=stdin, program=program)


def send(to: socket.socket, header: Header, blobs: Sequence[bytes] = (), fds: Sequence[int] = ()) -> None:
    """Sends one message. Raises OSError when the other end is gone."""
    body = json.dumps({**header, "blobs": [len(blob) for blob in blobs]}).encode()
    first = LENGTH.pack(len(body))
    if fds:
        sent = socket.send_fds(to, [first], list(fds))
        to.sendall(first[sent:])
    else:
        to.sendall(first)
    to.sendall(body)
    for blob in blobs:
        to.sendall(blob)


def receive(source: socket.socket) -> tuple[Header, list[bytes], list[int]]:
    """Waits for one message: header, blobs, descriptors (close-on-exec). Raises PeerGone."""
    try:
        first, fds, _, _ = socket.recv_fds(source, LENGTH.size, MOST_DESCRIPTORS)
        for fd in fds:
            os.set_inheritable(fd, False)
        if not first:
            raise PeerGone
        first += _exactly(source, LENGTH.size - len(first))
        header = json.loads(_exactly(source, LENGTH.unpack(first)[0]))
        return header, [_exactly(source, size) for size in header["blobs"]], list(fds)
    except ConnectionError as error:
        raise PeerGone from error


def _exactly(source: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = source.recv(min(count, 1 << 20))
        if not part:
            raise PeerGone
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
