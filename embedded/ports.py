"""Which port the service listens on."""

from __future__ import annotations

import socket

from embedded.errors import EmbeddedError

NEXT_PORTS = 20


def choose_port(host: str, port: int, *, insist: bool) -> int:
    """`port` if it is free; else, unless told to insist, the next free one of the 20 after it; 0: any free one.

    Raises EmbeddedError naming the port and the setting.
    """
    if port == 0 or _free(host, port):
        return port or _any(host)
    if insist:
        raise EmbeddedError(
            f"port {port} of {host} is taken; stop what listens there or set KERNELGATE_PORT to another"
        )
    for candidate in range(port + 1, port + 1 + NEXT_PORTS):
        if _free(host, candidate):
            return candidate
    raise EmbeddedError(
        f"ports {port} to {port + NEXT_PORTS} of {host} are all taken; set KERNELGATE_PORT to a free one"
    )


def _free(host: str, port: int) -> bool:
    try:
        with socket.socket(_family(host)) as probe:
            # As the server will: a connection of the last run that lingers in TIME_WAIT does not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except PermissionError as error:
        raise EmbeddedError(f"port {port}: not allowed for this user; set KERNELGATE_PORT to one above 1023") from error
    except socket.gaierror as error:
        raise EmbeddedError(
            f"host {host!r}: {error.strerror}; set KERNELGATE_HOST to an address of this machine"
        ) from error
    except OSError:
        return False
    return True


def _any(host: str) -> int:
    with socket.socket(_family(host)) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
