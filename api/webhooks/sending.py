"""One delivery: signed, sent to an address that was checked, within ten seconds, and nothing of the answer but its status.

Signed is `time.id.body` with HMAC-SHA256: the time anew at every try, so that what somebody recorded cannot be sent again
later, and the id, so that what arrives twice is known.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import socket
import ssl
import threading
import time
from typing import Any, NamedTuple

from api.problems import Refusal
from api.webhooks.places import PlaceError, address_of, check_url
from kernelgate import __version__

SECONDS = 10.0
_CONNECT_S = 5.0


class Answer(NamedTuple):
    """What came of a try. status: 0 where nothing answered."""

    status: int
    words: str

    @property
    def arrived(self) -> bool:
        return 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """410: whoever is there wants no more."""
        return self.status == http.HTTPStatus.GONE


def signature(secret: str, moment: int, name: str, body: bytes) -> str:
    signed = hmac.new(secret.encode(), f"{moment}.{name}.".encode() + body, hashlib.sha256)
    return f"t={moment},v1={signed.hexdigest()}"


def written(body: dict[str, Any]) -> bytes:
    """The same bytes at every try."""
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def send(url: str, secret: str, name: str, event: str, body: dict[str, Any]) -> Answer:
    """Never raises for what the other side does."""
    try:
        parts = check_url(url)
        tls = parts.scheme == "https"
        host, port = parts.hostname or "", parts.port or (443 if tls else 80)
        connection = _Checked(host, port, tls=tls)
    except (Refusal, PlaceError) as error:
        return Answer(0, error.detail if isinstance(error, Refusal) else str(error))
    data = written(body)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"Kernelgate/{__version__}",
        "Kernelgate-Event": event,
        "Kernelgate-Delivery": name,
        "Kernelgate-Signature": signature(secret, int(time.time()), name, data),
    }
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    watch = threading.Timer(SECONDS, connection.cut)
    watch.daemon = True
    watch.start()
    try:
        connection.request("POST", target, data, headers)
        status = connection.getresponse().status
    except ssl.SSLError:
        return Answer(0, "TLS failed: the certificate is not the host's, or has ended")
    except (OSError, http.client.HTTPException) as error:
        late = "it took longer than ten seconds" if connection.was_cut else type(error).__name__
        return Answer(0, f"no answer: {late}")
    finally:
        watch.cancel()
        connection.close()
    words = f"answered {status}" + ("; redirects are not followed" if 300 <= status < 400 else "")
    return Answer(status, words)


class _Checked(http.client.HTTPConnection):
    """A connection to an address that was checked, whatever the name leads to by now. Raises PlaceError."""

    def __init__(self, host: str, port: int, *, tls: bool) -> None:
        self._address = address_of(host, port)
        self._tls = ssl.create_default_context() if tls else None
        self.was_cut = False
        super().__init__(host, port, timeout=_CONNECT_S)
        if port == (443 if tls else 80):  # the default port is not named in Host
            self.default_port = port

    def connect(self) -> None:
        raw = socket.create_connection((self._address, self.port), timeout=_CONNECT_S)
        self.sock = self._tls.wrap_socket(raw, server_hostname=self.host) if self._tls else raw

    def cut(self) -> None:
        """From another thread: a server that sends a byte now and then would hold the connection for ever."""
        self.was_cut = True
        open_socket = self.sock
        if open_socket is not None:
            try:
                open_socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                return
