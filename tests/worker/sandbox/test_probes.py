"""Every attack, as a command and in a session, as root and as an ordinary user, with own namespaces and without."""

from __future__ import annotations

from typing import Any

import pytest

from worker.sandbox.probes import PROBES


def test_level(prober: Any, request: pytest.FixtureRequest) -> None:
    like = request.node.callspec.params["prober"].split("-")[1]
    assert prober.level == {"plain": "full", "docker": "reduced"}[like]


# A command and a session go through the same layers; only how the program starts differs, so two set-ups do both.
HOSTS = ("root-plain", "user-plain", "root-docker", "user-docker")
BOTH_WAYS = ("root-plain", "user-docker")


def ways(host: str) -> list[str]:
    return ["session", "run"] if host in BOTH_WAYS else ["session"]


@pytest.mark.parametrize(
    ("prober", "way", "name"),
    [(host, way, probe.name) for host in HOSTS for way in ways(host) for probe in PROBES],
    indirect=["prober"],
)
def test_held(prober: Any, way: str, name: str) -> None:
    outcome = prober.ask(way, name)
    assert outcome["held"], outcome


def test_neighbours(prober: Any) -> None:
    outcome = prober.ask("neighbours")
    assert outcome["held"], outcome


# What gets through to an ordinary user's worker without the layers: a probe that could not fail would prove nothing.
THROUGH = """
memory in socket buffers; memory in memory files; memory in System V segments; files in /dev/shm and /tmp;
a readable secret; a writable folder; owner, mode, times and attributes of files outside; symbolic link to a secret;
root of another process; other processes through /proc; memory of other processes; tracing;
signals through a descriptor; limits and priority of others; tcp to loopback; udp to loopback; a unix socket;
a unix socket by datagram; an abstract socket; exotic sockets; kernel surface; the other calling convention
"""


@pytest.mark.parametrize("prober", ["user-bare"], indirect=True)
def test_probes_get_through_where_no_layer_is(prober: Any) -> None:
    names = " ".join(THROUGH.split()).split("; ")
    assert set(names) <= {probe.name for probe in PROBES}
    assert [name for name in names if prober.ask("session", name)["held"]] == []
