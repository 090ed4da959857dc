"""Frames on a stream socket to the trusted side: a magic, the header's length, a JSON header, and the bytes it announces."""

import json
import struct

PREFIX = struct.Struct("<4sI")


def receive(channel):
    """The next header and its bytes. Ends the process when the other side is gone."""
    _magic, length = PREFIX.unpack(_read(channel, PREFIX.size))
    header = json.loads(_read(channel, length))
    return header, _read(channel, header["bytes"])


def _read(channel, count):
    parts = []
    while count:
        part = channel.recv(min(count, 1 << 20))
        if not part:
            raise SystemExit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def framed(header, payload=b""):
    body = json.dumps({**header, "bytes": len(payload)}).encode()
    return PREFIX.pack(b"KGF1", len(body)) + body + payload


def send(channel, header, payload=b""):
    channel.sendall(framed(header, payload))


def whole(held):
    """Whether these bytes are one frame, no less and no more."""
    if len(held) < PREFIX.size:
        return False
    end = PREFIX.size + PREFIX.unpack_from(held)[1]
    try:
        return len(held) == end + json.loads(bytes(held[PREFIX.size : end]))["bytes"]
    except (ValueError, KeyError, TypeError):
        return False
