"""Headers that every answer carries, and the log line and measurement of every request.

The log names the route and not the address: an invite's secret stands in its path, and whatever a client writes into an
address stays out of the log.
"""

from __future__ import annotations

import logging
import time

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.metrics import Metrics
from api.problems import handle
from kernelgate.settings import settings

log = logging.getLogger("api.requests")

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)

SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class Headers:
    """ASGI middleware: security headers, `no-store` unless the answer says otherwise, and one measurement a request."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status, begun = 500, False

        async def with_headers(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                _complete(MutableHeaders(scope=message))
            await send(message)

        try:
            await self.app(scope, receive, with_headers)
        except Exception as error:
            # Answered here and not by the framework's outermost layer, whose answer would lack the headers.
            if begun:
                raise
            response = await handle(Request(scope), error)
            await response(scope, receive, with_headers)
        finally:
            self._note(scope, status, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "(no route)"
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self.metrics.request(method, route, status, seconds)
        log.info("%s %s %s %.1f ms", method, route, status, seconds * 1000)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _complete(headers: MutableHeaders) -> None:
    for name, value in SECURITY_HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("Cache-Control", "no-store")
    headers.add_vary_header("Accept")
    if settings().cookie_secure:
        headers.setdefault("Strict-Transport-Security", "max-age=31536000")
