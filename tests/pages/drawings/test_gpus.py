"""What an administrator sees of each GPU: whether it takes work, why not, and its gauges."""

from __future__ import annotations

from datetime import timedelta

from kernelgate.db import transaction
from kernelgate.models import Role, WorkerRow, now
from tests.pages.conftest import Site, check

WELL = {
    "name": "NVIDIA H200", "bus": "00000000:1B:00.0", "celsius": 42, "memory_used_mib": 2048, "memory_mib": 143_360,
    "sm_mhz": 1980, "highest_sm_mhz": 1980, "watts": 121, "programs": 1, "uncorrected_errors": 0, "well": True,
}  # fmt: skip


def worker(name: str, *, healthy: bool = True, silent: bool = False, **health: object) -> WorkerRow:
    heartbeat = now() - timedelta(days=1) if silent else now()
    return WorkerRow(name=name, queues=["gpu-nvidia-h200"], backends=["gpu"], gpu_model="NVIDIA H200", healthy=healthy,
                     health=health, started_at=now(), heartbeat_at=heartbeat)  # fmt: skip


def test_each_gpu_says_whether_it_takes_work(site: Site) -> None:
    why = "a test kernel computed 3 of 16384 values <b>wrongly</b>"
    with transaction() as database:
        database.add(worker("a-well", cards=[{**WELL, "looked_at": now().isoformat()}]))
        database.add(worker("b-warm", cards=[{**WELL, "slowed": "too hot (hardware)", "celsius": 91}]))
        database.add(worker("c-broken", healthy=False, card=why,
                            cards=[{**WELL, "well": False, "why": why, "since": "2026-03-01T10:00:00+00:00"}]))  # fmt: skip
        database.add(worker("d-plain", cards=[]))
        database.add(worker("e-gone", silent=True, cards=[{**WELL, "celsius": "warm", "since": 5}]))
    text = check(site.sign_in("root", Role.ADMIN)[1].get("/admin/queue"))
    cards = {part.split("</span>")[0].rsplit(">", 1)[1]: part for part in text.split('class="gpu ')[1:]}
    assert list(cards) == ["c-broken", "e-gone", "b-warm", "a-well", "d-plain"], "what needs a hand stands first"
    assert "takes no work since" in cards["c-broken"]
    assert "2026-03-01 10:00 UTC" in cards["c-broken"]
    assert "16384 values &lt;b&gt;wrongly&lt;/b&gt;" in cards["c-broken"]
    assert "its worker does not answer" in cards["e-gone"]
    assert "Temperature" not in cards["e-gone"], "a gauge that says no number is left out"
    assert "but clocks are held down: too hot (hardware)" in cards["b-warm"]
    for words in ("✓ takes work", "last checked", "42 °C", "2.0 of 140 GiB", "1980 of 1980 MHz", "121 W"):
        assert words in cards["a-well"], words
    assert "✓ takes work" in cards["d-plain"]
    assert "<meter" not in cards["d-plain"]
