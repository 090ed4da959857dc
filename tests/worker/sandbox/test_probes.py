"""Every attack, as a command and in a session, as root and as an ordinary user, with own namespaces and without."""

from __future__ import annotations

from typing import Any

import pytest

from worker.sandbox.attacks.probes import PROBES

LEVELS = {"root-plain": "full", "user-plain": "full", "root-docker": "reduced", "user-docker": "reduced"}
# A command and a session go through the same layers; only how the program starts differs, so one set-up does both.
BOTH_WAYS = ("root-plain",)
# What gets through to an ordinary user's worker without the layers: a probe that could not fail would prove nothing.
THROUGH = """
memory in socket buffers; memory in memory files; memory in System V segments; files in /dev/shm and /tmp;
a readable secret; a writable folder; owner, mode, times and attributes of files outside; symbolic link to a secret;
root of another process; other processes through /proc; memory of other processes; tracing;
signals through a descriptor; limits and priority of others; tcp to loopback; udp to loopback; a unix socket;
a unix socket by datagram; an abstract socket; exotic sockets; kernel surface; the other calling convention
"""


def ways(host: str) -> list[str]:
    return ["session", "run"] if host in BOTH_WAYS else ["session"]


@pytest.mark.parametrize("host", LEVELS)
def test_level(probers: Any, host: str) -> None:
    assert probers(host).level == LEVELS[host]


@pytest.mark.parametrize(
    ("host", "way", "name"), [(host, way, probe.name) for host in LEVELS for way in ways(host) for probe in PROBES]
)
def test_held(probers: Any, host: str, way: str, name: str) -> None:
    outcome = probers(host).ask(way, name)
    assert outcome["held"], outcome


@pytest.mark.parametrize("host", LEVELS)
def test_neighbours(probers: Any, host: str) -> None:
    outcome = probers(host).ask("neighbours")
    assert outcome["held"], outcome


def test_probes_get_through_where_no_layer_is(probers: Any) -> None:
    names = " ".join(THROUGH.split()).split("; ")
    assert set(names) <= {probe.name for probe in PROBES}
    assert [name for name in names if probers("user-bare").ask("session", name)["held"]] == []
