"""Finding commands: our own and those of installed packages, through one hook, in groups for `--help`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points

import click

GROUP = "kernelgate.commands"

BUILT_IN = (
    ("client", "kernelgate.cli.submitting:commands"),
    ("reading", "kernelgate.cli.reading:commands"),
    ("pulling", "kernelgate.cli.pulling:commands"),
    ("login", "kernelgate.cli.login:commands"),
    ("courses", "kernelgate.cli.course_marks:commands"),
    ("contests", "kernelgate.cli.course_contest:commands"),
    ("webhooks", "kernelgate.cli.webhooks:commands"),
    ("talking", "kernelgate.cli.talking:commands"),
    ("administering", "kernelgate.cli.administering:commands"),
    ("accounts", "kernelgate.cli.accounts:commands"),
)
"""Our own plug-ins, in the form of an entry point: (name, "module:attribute")."""
_OFFLINE = {"user": "accounts", "token": "accounts", "invite": "accounts"}
"""Commands that need no HTTP client, and which plug-in has them: it alone is loaded."""

SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Submit", ("submit", "run", "result", "cancel", "stages", "leaderboard", "login", "logout")),
    ("Teach", ("course", "comments", "comment")),
    ("Administer", ("admin",)),
    ("On this machine", ("pull", "check", "bench", "stage", "doctor")),
    ("Run the service", ("up", "serve", "worker", "migrate", "settings")),
    ("Accounts (on the database)", ("user", "token", "invite")),
)
"""Headings of `--help`; a command of an add-on package stands under "More"."""


class Commands(click.Group):
    """The command line's root. Plug-ins are loaded when a command of theirs may be meant, our own first."""

    def __init__(self, **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type]  # click's own parameters, passed on
        self._unloaded = [*BUILT_IN]
        self._looked_outside = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        while self._load_next():
            pass
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._unloaded.sort(key=lambda each: each[0] != _OFFLINE.get(cmd_name))
        while cmd_name not in self.commands and self._load_next():
            pass
        return super().get_command(ctx, cmd_name)

    def _load_next(self) -> bool:
        """Loads one more plug-in. False when there is none left."""
        if not self._unloaded and not self._looked_outside:
            self._looked_outside = True
            self._unloaded = list(installed())
        if not self._unloaded:
            return False
        name, reference = self._unloaded.pop(0)
        for command in load(name, reference):
            self.add_command(command)
        return True

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = set(self.list_commands(ctx))
        placed = {name for _, members in SECTIONS for name in members}
        for title, members in (*SECTIONS, ("More", tuple(sorted(names - placed)))):
            present = [(name, self.commands[name]) for name in members if name in names]
            if present:
                with formatter.section(title):
                    width = formatter.width - 16
                    formatter.write_dl([(name, command.get_short_help_str(width)) for name, command in present])


def installed() -> Iterator[tuple[str, str]]:
    """Plug-ins of installed packages, by name, each once."""
    found = {(point.name, point.value) for point in entry_points(group=GROUP)}
    yield from sorted(found)


def load(name: str, reference: str) -> Sequence[click.Command]:
    """A plug-in's commands. One that fails gives a warning and none: the other commands must go on working."""
    module, _, attribute = reference.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
        commands = [*found]
        if not all(isinstance(command, click.Command) for command in commands):
            raise TypeError(f"{reference} is not a list of click commands")
    except Exception as error:  # a plug-in may fail in any way
        click.echo(
            f"kernelgate: the plug-in {name!r} ({reference}) could not be loaded, so its commands are missing: "
            f"{type(error).__name__}: {error}",
            err=True,
        )
        return ()
    return commands
