"""The lock files hold everything that the services import, declared by somebody or not.

An environment for development hides what is missing: kombu imports packaging without declaring it, and redis needs
async-timeout on the Python of Debian 12 alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest

from kernelgate.settings import ROOT

SERVICES = {
    "api": "from api.app import create_app; create_app().openapi()",
    "worker": "import worker.service.serve, worker.service.celery_app, kombu.transport.redis, celery.concurrency.prefork, "
    "celery.apps.worker",
    "command line": "from kernelgate.cli import main; main(['--help'], standalone_mode=False)",
    "embedded": "import embedded.commands, embedded.up, embedded.settings_page",
}
WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}: it is in no lock file", name=name)
sys.meta_path.insert(0, Absent())
{code}
print()
print(*{{name.partition(".")[0] for name in sys.modules}})
"""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(name: str) -> set[str]:
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    return {normal(found.group(1)) for line in lines if (found := re.match(r"([A-Za-z0-9._-]+)==", line))}


def modules_after(code: str) -> set[str]:
    """The top-level modules after `code`, run as if only what service.txt and build.txt lock were installed."""
    have = locked("service.txt") | locked("build.txt") | {"kernelgate"}
    absent = {name for name, owners in packages_distributions().items() if not have & set(map(normal, owners))}
    assert "pytest" in absent
    program = WITHOUT.format(absent=absent, code=code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_needs_nothing_that_is_not_locked(service: str) -> None:
    assert "kernelgate" in modules_after(SERVICES[service])


def test_services_import_nothing_that_only_the_sandbox_needs() -> None:
    assert not {"torch", "triton", "cuda"} & modules_after("; ".join(SERVICES.values()))


def test_locks_agree_with_each_other() -> None:
    """A package in two files has one version, or the second installation would undo the first."""
    versions: dict[str, set[str]] = {}
    for path in (ROOT / "requirements").glob("*.txt"):
        for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^\s\\;]+)", path.read_text(), re.MULTILINE):
            versions.setdefault(normal(name), set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", ["build.txt", "service.txt", "dev.txt", "gpu.txt", "cuda.txt"])
def test_every_locked_package_has_hashes(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text()
    for block in re.split(r"\n(?=[A-Za-z0-9])", text):
        if "==" in block.splitlines()[0]:
            assert "--hash=sha256:" in block, block.splitlines()[0]


def test_what_measures_is_locked_within_the_bound_that_the_package_states() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["gpu"]
    assert (ROOT / "requirements" / "gpu.in").read_text().splitlines()[-1] in stated
    assert "cuda-bindings" in locked("gpu.txt")
