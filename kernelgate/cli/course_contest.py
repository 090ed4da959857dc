"""`course contest` and what belongs to it."""

from __future__ import annotations

import json
from typing import Any

import click

from kernelgate.cli.courses import MOMENT, course, of
from kernelgate.cli.reading import table
from kernelgate.cli.server import server
from kernelgate.cli.submitting import path_part
from kernelgate.text import line


@course.command("contest")
@click.argument("name")
@click.option("--csv", "as_csv", is_flag=True, help="Print the board as comma-separated values.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--whole", is_flag=True, help="With what the freeze keeps back. For the course's staff.")
def show_contest(name: str, as_csv: bool, as_json: bool, whole: bool) -> None:
    """Show the board of the contest NAME."""
    address = of(name, "contest") if whole else f"/contests/{path_part(name)}"
    with server() as remote:
        if as_csv and not whole:
            click.echo(remote.answer("GET", address, params={"format": "csv"}).text, nl=False)
            return
        found = remote.json("GET", address)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [["RANK", "WHO", "POINTS", "MINUTES", *(line(stage) for stage in found["stages"])]]
    for row in found["rows"]:
        cells = [_cell(cell) for cell in row["cells"]]
        rows.append([str(row["rank"]), line(row["name"]), f"{row['points']:g}", str(row["minutes"]), *cells])
    click.echo(table(rows) if found["rows"] else "nobody takes part")
    click.echo(f"{found['state']}; {found['to_reveal']} results kept back", err=True)


def _cell(cell: dict[str, Any]) -> str:
    reached = (
        f"{cell['points']:g} {cell['minutes']}'" if cell["points"] else f"-{cell['tries']}" if cell["tries"] else ""
    )
    return f"{reached} {'?' * bool(cell['hidden'])}".strip() or "."


@course.command("contest-times")
@click.argument("name")
@click.option("--starts", type=MOMENT, default=None, metavar="TIME", help="When it starts, in UTC unless it says.")
@click.option("--ends", type=MOMENT, default=None, metavar="TIME", help="When it ends.")
@click.option("--freezes", type=MOMENT, default=None, metavar="TIME", help="When its board stands still.")
@click.option("--penalty", default=20, show_default=True, help="Minutes for each attempt before the one that counts.")
@click.option("--public", is_flag=True, help="Let everybody see the board.")
@click.option("--virtual", is_flag=True, help="Let who missed the start have a start of their own.")
@click.option("--remove", is_flag=True, help="Make the course no contest any more.")
def set_contest(name: str, remove: bool, **given: Any) -> None:
    """Make the course NAME a contest, or change its times; what is not named is as in a new one."""
    with server() as remote:
        if remove:
            remote.answer("POST", of(name, "contest", "remove"))
            click.echo(f"{name} is no contest")
            return
        times = {f"{key}_at": given.pop(key) or None for key in ("starts", "ends", "freezes")}
        found = remote.json("POST", of(name, "contest"), json={**times, **given})
    click.echo(f"{name}  {found['starts_at']} to {found['ends_at']}  {found['state']}")


@course.command("reveal")
@click.argument("name")
@click.argument("what", type=click.Choice(["next", "all", "none"]), default="next")
def reveal(name: str, what: str) -> None:
    """Reveal the next of the results that the freeze of the contest NAME keeps back, or all; `none` freezes again."""
    with server() as remote:
        found = remote.json("POST", of(name, "contest", "reveal"), json={"what": what})
    who = f"{line(found['last'][0])} in {line(found['last'][1])}; " if found["last"] else ""
    click.echo(f"{who}{found['to_reveal']} kept back")


@course.command("start")
@click.argument("name")
def start(name: str) -> None:
    """Start late in the contest NAME, on a clock of your own, once."""
    with server() as remote:
        found = remote.json("POST", of(name, "contest", "start"))
    click.echo(f"started; ends {found['your_end']}")


commands = [course]
