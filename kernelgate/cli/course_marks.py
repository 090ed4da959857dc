"""`course grid`, `points` and what belongs to them: what the members of a course reached, for scripts and spreadsheets."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import click

from kernelgate.cli.courses import course, handle_part, of
from kernelgate.cli.reading import table
from kernelgate.cli.server import server
from kernelgate.text import line


def _person(name: str, handle: str, *parts: str) -> str:
    return "/".join([of(name, "people"), handle_part(handle), *parts])


@course.command("grid")
@click.argument("name")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values: a line for each person and stage.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--stuck", is_flag=True, help="Only who looks stuck, and why.")
def show_grid(name: str, as_csv: bool, as_json: bool, stuck: bool) -> None:
    """Show people × stages of the course NAME: points and best verdicts. For its staff."""
    _show(of(name, "grid"), as_csv=as_csv, as_json=as_json, stuck=stuck)


@course.command("points")
@click.argument("name")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values: a line a person.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_points(name: str, as_csv: bool, as_json: bool) -> None:
    """Show the points of everybody in the course NAME. For its staff."""
    _show(of(name, "points"), as_csv=as_csv, as_json=as_json)


def _show(address: str, *, as_csv: bool, as_json: bool, stuck: bool = False) -> None:
    with server() as remote:
        if as_csv:
            click.echo(remote.answer("GET", address, params={"format": "csv"}).text, nl=False)
            return
        found = remote.json("GET", address)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    elif stuck:
        for row in found["rows"]:
            for cell in row["cells"]:
                if cell["stuck"]:
                    click.echo(f"{line(row['handle'])}  {line(cell['stage'])}  {line(cell['stuck'])}")
    else:
        rows = [["PERSON", "POINTS", *(line(stage) for stage in found["stages"])]]
        rows += [
            [line(row["handle"]), f"{row['points']:g}", *(_cell(cell) for cell in row["cells"])]
            for row in found["rows"]
        ]
        click.echo(table(rows))


def _cell(cell: dict[str, Any]) -> str:
    return f"{cell['points']:g} {line(cell['verdict'] or '')}".strip() if cell["attempts"] or cell["points"] else "-"


@course.command("timeline")
@click.argument("name")
@click.argument("handle")
@click.argument("stage")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_timeline(name: str, handle: str, stage: str, as_json: bool) -> None:
    """Show every attempt of HANDLE at STAGE in the course NAME."""
    with server() as remote:
        found = remote.json("GET", _person(name, handle, stage))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [["WHEN", "VERDICT", "SPEEDUP", "LINES", "SUBMISSION", "MISTAKE"]]
    for each in found["attempts"]:
        speedup = f"{each['speedup']:.3f}x" if each["speedup"] else "-"
        lines = f"+{each['added']} -{each['removed']}"
        mark = "*" if each["id"] == found["cell"]["counts"] else " "
        verdict = line(each["verdict"] or "waits")
        rows.append([each["at"][:16], verdict, speedup, lines, f"{mark}{each['id']}", line(each["mistake"] or "")])
    click.echo(table(rows))
    click.echo(f"{found['cell']['points']:g} points; * counts", err=True)


@course.command("give")
@click.argument("name")
@click.argument("handle")
@click.argument("stage")
@click.argument("points")
@click.option("--reason", default="", help="Why; HANDLE reads it.")
def give(name: str, handle: str, stage: str, points: str, reason: str) -> None:
    """Give HANDLE POINTS for STAGE by hand, in place of those earned; `none` takes them back."""
    body = {"points": None if points == "none" else points, "reason": reason}
    with server() as remote:
        found = remote.json("POST", _person(name, handle, stage, "points"), json=body)
    click.echo(f"{line(found['user'])}  {stage}  {found['cell']['points']:g} points")


@course.command("changes")
@click.argument("name")
@click.option(
    "--take", metavar="STAGE", default=None, help="Take the newest judgings of STAGE over: from now on they count."
)
def show_changes(name: str, take: str | None) -> None:
    """Show whose points newer judgings would change in the course NAME, were they taken over."""
    with server() as remote:
        if take:
            remote.json("POST", of(name, "stages", take, "mark"))
        found = remote.json("GET", of(name, "changes"))
    rows = [["STAGE", "PERSON", "NOW", "WOULD BE"]]
    rows += [[line(each["stage"]), line(each["user"]), f"{each['before']:g}", f"{each['after']:g}"] for each in found]
    click.echo(table(rows) if found else "nothing would change")


@course.command("hide")
@click.argument("name")
@click.argument("submission")
@click.option("--show", is_flag=True, help="Show it again.")
def hide(name: str, submission: str, show: bool) -> None:
    """Hide SUBMISSION of a member of the course NAME: it stands on no board and earns no points."""
    with server() as remote:
        remote.json("POST", of(name, "submissions", submission, "hide"), json={"hidden": not show})
    click.echo(f"{submission}  {'shown' if show else 'hidden'}")


@course.command("log")
@click.argument("name")
@click.argument("handle")
def show_log(name: str, handle: str) -> None:
    """Print the work log of HANDLE in the course NAME, as Markdown."""
    with server() as remote:
        click.echo(remote.text("/".join([of(name, "logs"), handle_part(handle)]), "text/markdown"), nl=False)


@course.command("gradescope")
@click.argument("name")
@click.argument("file", type=click.File("wb"))
def save_gradescope(name: str, file: BinaryIO) -> None:
    """Save Gradescope's results.json of everybody in the course NAME as the ZIP file FILE."""
    with server() as remote:
        file.write(remote.answer("GET", f"{of(name)}/gradescope.zip").content)


@course.command("similar")
@click.argument("name")
@click.argument("stage")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_similar(name: str, stage: str, as_json: bool) -> None:
    """Show which submissions of STAGE in the course NAME are alike, the most alike first. It decides nothing."""
    with server() as remote:
        found = remote.json("GET", of(name, "stages", stage, "similarity"))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [["ALIKE", "PARTS", "ONE", "OTHER", "SUBMISSIONS"]]
    for each in found:
        people, names = ([line(each[side][key]) for side in ("one", "other")] for key in ("user", "submission"))
        rows.append([f"{100 * each['share']:.0f} %", str(each["parts"]), *people, " ".join(names)])
    click.echo(table(rows) if found else "no two are alike")


commands = [course]
