"""Every setting, verdict, command, option and route is documented, and the documentation names nothing that is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest

from api.app import create_app
from api.metrics import Metrics
from embedded.settings_page import markdown, variable
from kernelgate.cli import main
from kernelgate.settings import ROOT, Settings
from kernelgate.verdicts import Phase, Verdict

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("requirements/*.md")])
DEPLOYMENT = [
    ROOT / name for name in ("Dockerfile", "Dockerfile.gpu", "docker-compose.yml", ".env.example", "Makefile")
]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+)?(?:#([^)\s]+))?\)")


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def commands(group: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command below a group with the words one types for it."""
    if isinstance(group, click.Group):
        with click.Context(group) as context:
            for name in group.list_commands(context):
                found = group.get_command(context, name)
                assert found is not None
                yield from commands(found, (*words, name))
    else:
        yield " ".join(words), group


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as repository browsers make them."""
    heads = re.findall(r"^#+ +(.+?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_a_token_has_one_name_wherever_somebody_is_told_to_use_it() -> None:
    """A line that is copied from a lesson works with the variable that the README and the command line name."""
    told = [*PAGES, *ROOT.glob("graders/*/lesson.md"), *ROOT.glob("web/templates/*.html"), *ROOT.glob("api/pages/*.py")]
    names = [name for path in told for name in re.findall(r"Bearer '?\$\{?(\w+)", path.read_text())]
    assert len(names) > len([*ROOT.glob("graders/*/lesson.md")])
    assert {*names} == {"KERNELGATE_TOKEN"}


def test_the_settings_page_is_what_the_code_says() -> None:
    assert page("settings.md") == markdown(), "write it again: kernelgate settings --markdown > docs/settings.md"


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_says_what_it_is(name: str) -> None:
    description = Settings.model_fields[name].description
    assert description
    assert description[0].isupper()
    assert f"`{variable(name)}`" in page("settings.md")


@pytest.mark.parametrize("path", [*PAGES, *DEPLOYMENT], ids=lambda path: path.name)
def test_no_page_names_a_setting_that_is_not_there(path: Path) -> None:
    known = {variable(name) for name in Settings.model_fields}
    # Variables of the command line's own, which are no settings of the service.
    known |= {"KERNELGATE_URL", "KERNELGATE_TOKEN"}
    assert set(re.findall(r"KERNELGATE_[A-Z_]*[A-Z]", path.read_text())) - known == set()


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_is_explained_and_has_its_exit_status(verdict: Verdict) -> None:
    assert f"`{verdict}`" in page("api.md")
    status = verdict.about.exit_status
    assert re.search(rf"`?{verdict}`?.*\b{status}\b|\b{status}\b.*`?{verdict}`?", page("cli.md")), status


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_is_explained(phase: Phase) -> None:
    assert f"`{phase}`" in page("api.md")


@pytest.mark.parametrize(
    ("words", "command"), list(commands(main)), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_and_option_is_documented(words: str, command: click.Command) -> None:
    text = page("cli.md")
    assert f"kernelgate {words}" in text
    assert command.help, f"kernelgate {words} has no help"
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help, f"kernelgate {words} {parameter.opts} has no help"
            assert any(f"{option}" in text for option in parameter.opts), f"kernelgate {words} {parameter.opts}"


def test_every_built_in_command_hook_loads() -> None:
    found = {hook.name: hook.load() for hook in entry_points(group="kernelgate.commands")}
    assert {"api", "embedded", "worker"} <= set(found)
    assert all(isinstance(command, click.Command) for hook in found.values() for command in hook)


def api_routes() -> list[str]:
    """`GET /stages` and so on, of the OpenAPI document."""
    paths = create_app().openapi()["paths"]
    return [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]


def test_there_are_routes_to_document() -> None:
    assert "POST /submit" in api_routes()


@pytest.mark.parametrize("route", api_routes())
def test_every_route_is_documented(route: str) -> None:
    assert route in page("api.md")


def test_every_metric_that_an_alarm_names_is_served(database: str) -> None:
    assert database
    served = Metrics(lambda: 0).exposition().decode()
    named = set(re.findall(r"kernelgate_[a-z_]+(?=[ {`\[])", page("deploy.md") + page("alerts.yml")))
    assert {"kernelgate_database_up", "kernelgate_queue_oldest_seconds"} <= named
    types = set(re.findall(r"^# TYPE (\S+)", served, re.MULTILINE))
    assert named - types == set()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_leads_somewhere(path: Path) -> None:
    text = path.read_text()
    for target, anchor in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), f"{path.name}: {target}"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there.read_text()), f"{path.name}: {target}#{anchor}"
