"""`stages` and `leaderboard`."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from kernelgate.cli.server import server
from kernelgate.cli.submitting import path_part
from kernelgate.text import line


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in aligned columns; the last is not padded."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def stages(as_json: bool) -> None:
    """List the server's stages and whether they take submissions."""
    with server() as remote:
        found = remote.json("GET", "/stages")
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [["STAGE", "FILE", "STATE", "TITLE"]]
    rows += [
        [line(each["name"]), line(each["file"]), "open" if each["open"] else "closed", line(each["title"])]
        for each in found
    ]
    click.echo(table(rows))


@click.command()
@click.argument("stage")
@click.option("--gpu", default=None, metavar="MODEL", help="The board of this GPU model; default: the most used.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="Rows to show.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def leaderboard(stage: str, gpu: str | None, limit: int, as_csv: bool, as_json: bool) -> None:
    """Show the leaderboard of STAGE."""
    address = f"/leaderboard/{path_part(stage)}"
    parameters = {"limit": str(limit), **({"gpu": gpu} if gpu else {})}
    with server() as remote:
        if as_csv:
            answer = remote.answer("GET", address, params={**parameters, "format": "csv"})
            click.echo(answer.text, nl=False)
            return
        board = remote.json("GET", address, params=parameters)
    if as_json:
        click.echo(json.dumps(board, indent=2))
        return
    timed = board["ranking"] == "speedup"
    rows = [["RANK", "USER", "ATTEMPTS", "SPEEDUP" if timed else "ACCEPTED", "SUBMISSION"]]
    for row in board["rows"]:
        merit = f"{row['speedup']:.3f}x" if timed else line(row["accepted_at"])[:19]
        rows.append([str(row["rank"]), line(row["user"]), str(row["attempts"]), merit, line(row["submission"])])
    click.echo(table(rows) if len(rows) > 1 else "nobody was accepted yet")
    if board["total"] > len(board["rows"]):
        click.echo(f"… {board['total'] - len(board['rows'])} more", err=True)


commands = [stages, leaderboard]
