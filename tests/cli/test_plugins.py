"""Plug-ins: our own and those of others come through one hook, and a broken one breaks nothing but itself."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kernelgate.cli.plugins import BUILT_IN, SECTIONS, load
from kernelgate.cli.reference import cli_page
from kernelgate.settings import ROOT


def add_package(folder: Path, name: str, source: str, reference: str) -> None:
    """An installed distribution with an entry point of our group, as pip would leave it."""
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[kernelgate.commands]\n{name} = {reference}\n")


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kernelgate", *words],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


WORKING = (
    "import click\n@click.command()\ndef greet():\n    '''Say hello.'''\n    click.echo('hello')\ncommands = [greet]\n"
)


def test_an_installed_package_adds_commands(tmp_path: Path) -> None:
    add_package(tmp_path, "greeter", WORKING, "greeter:commands")
    shown = run(tmp_path, "--help")
    assert shown.returncode == 0
    assert "More:" in shown.stdout
    assert "Say hello." in shown.stdout
    assert run(tmp_path, "greet").stdout == "hello\n"


@pytest.mark.parametrize(
    ("source", "reference", "said"),
    [
        ("raise RuntimeError('no driver here')\n", "broken:commands", "RuntimeError: no driver here"),
        ("import not_installed_anywhere\n", "broken:commands", "ModuleNotFoundError"),
        ("commands = ['not a command']\n", "broken:commands", "not a list of click commands"),
        ("x = 1\n", "broken:commands", "AttributeError"),
        ("raise SystemError\n", "nowhere_to_be_found:commands", "ModuleNotFoundError"),
    ],
)
def test_a_broken_one_gives_a_warning_and_the_others_work(
    tmp_path: Path, source: str, reference: str, said: str
) -> None:
    add_package(tmp_path, "broken", source, reference)
    shown = run(tmp_path, "--help")
    assert shown.returncode == 0
    assert "submit" in shown.stdout
    assert "the plug-in 'broken'" in shown.stderr
    assert said in shown.stderr
    assert "Traceback" not in shown.stderr


def test_our_own_commands_load_through_the_same_hook_and_without_the_services() -> None:
    for name, reference in BUILT_IN:
        assert load(name, reference), name
    code = (
        "import sys\nfrom kernelgate.cli.plugins import BUILT_IN, installed, load\n"
        "[load(*each) for each in (*BUILT_IN, *installed())]\n"
        "heavy = ('sqlalchemy', 'pydantic', 'fastapi', 'celery', 'alembic', 'redis', 'numpy')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout == "[]\n", "help, and a command that talks to a server, must not wait for a database's library"


def test_a_command_on_the_database_loads_no_http_client() -> None:
    code = (
        "import sys\nfrom kernelgate.cli import main\n"
        "main(['token', '--help'], standalone_mode=False)\nprint('httpx' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout.endswith("\nFalse\n")


def test_help_is_grouped_and_knows_every_command() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "kernelgate", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    for title, members in SECTIONS:
        assert f"{title}:" in shown.stdout
        for name in members:
            assert f"\n  {name} " in shown.stdout, name
    assert "More:" not in shown.stdout


def test_an_unknown_command_is_a_usage_error() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "kernelgate", "submitt"], capture_output=True, text=True, timeout=60, check=False
    )
    assert shown.returncode == 2
    assert "No such command 'submitt'" in shown.stderr


def test_help_of_a_client_command_is_quick() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "kernelgate", "submit", "--help"], capture_output=True, timeout=60, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    assert used < 1.5, "seconds of processor time; half a second on an idle machine"


def test_the_page_is_what_the_commands_say() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert page == cli_page(), "write it again: python -m kernelgate.cli.reference > docs/cli.md"


def test_loading_gives_commands() -> None:
    assert all(isinstance(command, click.Command) for command in load("client", BUILT_IN[0][1]))
