"""docs/cli.md: every command with its help, written from the commands, so the page cannot say anything they do not.

`python -m kernelgate.cli.reference > docs/cli.md` writes it; a test fails when it lags behind.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import click

from kernelgate.cli import main
from kernelgate.cli.exits import Exit
from kernelgate.cli.plugins import GROUP, SECTIONS
from kernelgate.verdicts import ABOUT

HEAD = f"""# The command line

This page is written by `python -m kernelgate.cli.reference` from the commands' own help. `python -m kernelgate` is
the same as `kernelgate`.

`submit`, `run`, `result`, `cancel`, `stages`, `leaderboard`, `pull`, `course`, `comments`, `comment` and `admin` talk to a
server: the one of `KERNELGATE_URL` and `KERNELGATE_TOKEN`, else the one that `kernelgate login` stored, else `http://127.0.0.1:8000`.
`user`, `token` and `invite` work on the database of `KERNELGATE_DATABASE_URL` and need no server.
Evidence and data go to standard output, progress and messages to the error stream.

An installed package adds commands by an entry point of the group `{GROUP}` that names a list of click commands.

## Exit statuses

0 means `accepted` or `correct`, or that a command without a verdict did its work.
"""


def cli_page() -> str:
    """The whole page."""
    context = click.Context(main, info_name="kernelgate")
    names = main.list_commands(context)
    placed = {name for _, members in SECTIONS for name in members}
    sections = (*SECTIONS, ("More", tuple(name for name in names if name not in placed)))
    lines = [HEAD, *_statuses()]
    for title, members in sections:
        present = [name for name in members if name in names]
        lines += [f"## {title}\n", *(line for name in present for line in _command(name, context))] if present else []
    return "\n".join(lines).rstrip() + "\n"


def _statuses() -> list[str]:
    verdicts = [f"| {about.exit_status} | `{verdict}` | {about.meaning} |" for verdict, about in ABOUT.items()]
    others = [f"| {int(status)} | | {status.meaning} |" for status in Exit]
    return ["| status | verdict | meaning |", "|---|---|---|", *verdicts, *others, ""]


def _command(name: str, parent: click.Context) -> Iterator[str]:
    command = parent.command.get_command(parent, name) if isinstance(parent.command, click.Group) else None
    if command is None:
        return
    context = click.Context(command, info_name=name, parent=parent)
    if isinstance(command, click.Group):
        yield f"### {context.command_path}\n"
        yield f"{_prose(command.help)}\n"
        for inner in command.list_commands(context):
            yield from _command(inner, context)
        return
    words = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"#### {context.command_path}\n" if parent.parent else f"### {context.command_path}\n"
    yield f"```\n{words}\n```\n"
    yield f"{_prose(command.help)}\n"
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    for option in options:
        record = option.get_help_record(context)
        if record is not None:
            yield f"- `{record[0]}`: {record[1]}"
    if options:
        yield ""


def _prose(text: str | None) -> str:
    r"""A command's help as paragraphs; `\b` only tells click to keep lines."""
    paragraphs = inspect.cleandoc(text or "").replace("\b\n", "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


if __name__ == "__main__":
    sys.stdout.write(cli_page())
