"""Where a webhook may lead. An address that somebody types makes this service send, from where it stands: behind firewalls.

So what is connected to is a public address, or one of a network that the operator named; it is looked up once for each try, and
the connection goes to that very address, for a name may lead elsewhere a moment later. Nothing that comes back is followed or
shown but a status.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from api.problems import Refusal
from kernelgate.settings import settings

_WRAPPED = tuple(map(ip_network, ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16")))
"""IPv6 networks whose addresses mean an IPv4 address, perhaps a private one."""
_LONGEST = 500
_ACCEPTED = "https://host/path, with the port 443 or one from 1024 on"


class PlaceError(Exception):
    """The address leads nowhere that may be reached."""


def may_reach(address: str) -> bool:
    """Whether a resolved address may be connected to."""
    found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if _named(found):
        return True
    if isinstance(found, IPv6Address) and any(found in network for network in _WRAPPED):
        return False
    return found.is_global and not (found.is_multicast or found.is_reserved or found.is_unspecified)


def _named(found: IPv4Address | IPv6Address) -> bool:
    """Whether the operator named the network."""
    parts = (part.strip() for part in settings().webhook_networks.split(","))
    return any(found in ip_network(part) for part in parts if part)


def check_url(url: str) -> SplitResult:
    """The parts of an address that a webhook may have. Raises Refusal; names are looked up only when something is sent."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _refused(url, "It cannot be read as an address.") from None
    schemes = ("https", "http") if settings().webhook_networks else ("https",)
    if parts.scheme not in schemes or not host or len(url) > _LONGEST or not url.isascii() or not url.isprintable():
        raise _refused(url, "It is no https address.")
    if parts.username is not None or parts.password is not None or parts.fragment or " " in url:
        raise _refused(url, "It has a user, a fragment or a space in it.")
    if port is not None and port not in (80, 443) and port < 1024:
        raise _refused(url, f"Port {port} is none that webhooks are sent to.")
    try:
        literal = may_reach(host)
    except ValueError:
        literal = True  # a name
    if not literal:
        raise _refused(url, "The address is not public.")
    return parts


def _refused(url: str, why: str) -> Refusal:
    return Refusal("invalid_field", why, field="url", value=url, accepted=_ACCEPTED)


def address_of(host: str, port: int) -> str:
    """The address to connect to. Raises PlaceError, the same for a name that leads nowhere and for one that leads inside."""
    try:
        found = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        found = []
    if not found or not all(map(may_reach, found)):
        raise PlaceError("the name leads to no public address")
    return found[0]
