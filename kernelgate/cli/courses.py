"""`course`: what a course's page does, for scripts."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, TextIO

import click

from kernelgate.cli.exits import Exit, stop
from kernelgate.cli.reading import table
from kernelgate.cli.server import Server, server
from kernelgate.cli.submitting import path_part
from kernelgate.text import line

ROLES = click.Choice(["member", "assistant", "instructor"])
_TIMES = "2027-02-14T22:00, in UTC unless it says its zone."


class _Moment(click.ParamType[str]):
    """A time in ISO 8601; `none` for none."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "none":
            return ""
        try:
            return datetime.fromisoformat(str(value)).isoformat()
        except ValueError:
            self.fail(f"{value!r} is no time; {_TIMES}", param, ctx)


MOMENT = _Moment()


def of(course: str, *parts: str) -> str:
    return "/".join(["/courses", path_part(course), *(path_part(part) for part in parts)])


def handle_part(text: str) -> str:
    """A handle as a part of an address; it may have dots."""
    path_part(text.replace(".", "_"))
    return text


@click.group()
def course() -> None:
    """Run a course: people, stages and times, judging again."""


@course.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def list_courses(as_json: bool) -> None:
    """List the courses that you are in."""
    with server() as remote:
        found = remote.json("GET", "/courses")
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [["COURSE", "ROLE", "MEMBERS", "STAGES", "TITLE"]]
    rows += [
        [line(each["name"]), line(each["role"] or "-"), str(each["members"]), str(each["stages"]), line(each["title"])]
        for each in found
    ]
    click.echo(table(rows) if found else "you are in no course")


@course.command("new")
@click.argument("name")
@click.option("--title", required=True, help="What people call it.")
@click.option("--late-days", default=0, show_default=True, help="Days that everybody may be late in all.")
def new(name: str, title: str, late_days: int) -> None:
    """Make the course NAME; you are its first instructor. For accounts with the role instructor."""
    with server() as remote:
        made = remote.json("POST", "/courses", json={"name": name, "title": title, "late_days": late_days})
    click.echo(f"{made['name']}  {line(made['title'])}")


@course.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show(name: str, as_json: bool) -> None:
    """Show the stages of the course NAME with their times, and its newest announcements."""
    with server() as remote:
        found = remote.json("GET", of(name))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [["STAGE", "OPENS", "DUE", "POINTS", "TITLE"]]
    for each in found["stages"]:
        times = [str(each[key] or "-")[:16] for key in ("opens_at", "your_due_at")]
        rows.append([line(each["stage"]), *times, f"{each['points']:g} ({each['rule']})", line(each["title"])])
    click.echo(table(rows) if found["stages"] else "no stages yet")
    for each in found["announcements"][:3]:
        click.echo(f"\n{each['at'][:16]}  {line(each['actor'])}: {line(each['text'], 500)}")


@course.command("people")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def people(name: str, as_json: bool) -> None:
    """List who is in the course NAME. For its staff."""
    with server() as remote:
        found = remote.json("GET", of(name, "members"))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [["HANDLE", "ROLE", "TEAM", "E-MAIL", "NAME"]]
    rows += [[line(str(each[key] or "-")) for key in ("handle", "role", "team", "email", "person")] for each in found]
    click.echo(table(rows))


@course.command("add")
@click.argument("name")
@click.argument("file", type=click.File("r"))
@click.option("--role", type=ROLES, default="member", show_default=True, help="What they are in the course.")
def add(name: str, file: TextIO, role: str) -> None:
    """Add the people of FILE to the course NAME: `e-mail[, name[, team]]` or a handle a line; `-` reads standard input.

    Prints a line of CSV for each invited person, with a link of their own; nothing is sent.
    """
    with server() as remote:
        answer = remote.json("POST", of(name, "members"), json={"lines": file.read(), "role": role})
    for each in answer["invited"]:
        click.echo(",".join(line(each[key]).replace(",", " ") for key in ("email", "person", "team", "url")))
    for handle in answer["added"]:
        click.echo(f"added {line(handle)}", err=True)
    for each in answer["skipped"]:
        click.echo(f"left out {line(each)}", err=True)


@course.command("invite")
@click.argument("name")
@click.option("--role", type=ROLES, default="member", show_default=True, help="What they are in the course.")
@click.option("--uses", default=50, show_default=True, type=click.IntRange(1, 1000), help="How many may use it.")
@click.option("--days", default=30.0, show_default=True, help="Days it can be used.")
def invite(name: str, role: str, uses: int, days: float) -> None:
    """Make a link into the course NAME and print it, this once."""
    with server() as remote:
        body = {"role": role, "uses": uses, "days": days}
        click.echo(line(remote.json("POST", of(name, "invites"), json=body)["url"], 500))


@course.command("seat")
@click.argument("name")
@click.argument("handle")
@click.option("--role", type=ROLES, default=None, help="What they are from now on.")
@click.option("--team", default=None, help="Their team, made if it is new; an empty name for none.")
@click.option("--remove", is_flag=True, help="Take them out of the course.")
def change_seat(name: str, handle: str, role: str | None, team: str | None, remove: bool) -> None:
    """Change what HANDLE is in the course NAME, or their team."""
    change = {key: value for key, value in (("role", role), ("team", team)) if value is not None}
    address = f"{of(name, 'members')}/{handle_part(handle)}"
    with server() as remote:
        found = remote.json("POST", f"{address}/remove" if remove else address, json=change)
    click.echo(f"{line(found['handle'])}  {'removed' if remove else line(found['role'])}  {line(found['team'] or '-')}")


@course.command("stage")
@click.argument("name")
@click.argument("stage")
@click.option("--opens", type=MOMENT, default=None, metavar="TIME", help=f"When it opens: {_TIMES}")
@click.option("--due", type=MOMENT, default=None, metavar="TIME", help="When it is due.")
@click.option("--freezes", type=MOMENT, default=None, metavar="TIME", help="When the course's board stands still.")
@click.option("--late", type=click.Choice(["none", "penalty", "days"]), default=None, help="What late work is worth.")
@click.option("--late-limit", type=int, default=None, help="Days after which nothing counts.")
@click.option("--late-percent", type=float, default=None, help="Of `penalty`: percent less a day.")
@click.option("--quota", type=int, default=None, help="Submissions of a person within 24 hours.")
@click.option("--joint/--single", "joint", default=None, help="By team, or each person for themselves.")
@click.option(
    "--rule", type=click.Choice(["pass", "thresholds", "ratio", "cases"]), default=None, help="Points by what."
)
@click.option("--points", type=float, default=None, help="The most there are.")
@click.option("--steps", default=None, metavar="STEPS", help="Of `thresholds`: '0: 4, 1.8: 10'.")
@click.option("--remove", is_flag=True, help="Take the stage out of the course.")
def set_stage(name: str, stage: str, remove: bool, **given: Any) -> None:
    """Put STAGE into the course NAME, or change what the course says of it; what is not named stays as it is."""
    with server() as remote:
        if remove:
            remote.json("POST", of(name, "stages", stage, "remove"))
            click.echo(f"{stage} is out of {name}")
            return
        body = _stage_now(remote, name, stage)
        for key, value in given.items():
            field = {"opens": "opens_at", "due": "due_at", "freezes": "freezes_at"}.get(key, key)
            body[field] = body.get(field) if value is None else value
        sent = {key: value for key, value in body.items() if value is not None}
        found = remote.json("POST", of(name, "stages", stage), json=sent)
    row = next(each for each in found if each["stage"] == stage)
    click.echo(f"{stage}  due {row['due_at'] or 'never'}  {row['points']:g} points ({row['rule']})")


def _stage_now(remote: Server, name: str, stage: str) -> dict[str, Any]:
    """What the course says of the stage, as it is sent; for one that is new, only its place: the last."""
    stages = remote.json("GET", of(name))["stages"]
    found = next((each for each in stages if each["stage"] == stage), {"place": len(stages) + 1})
    return {key: value for key, value in found.items() if key not in ("stage", "title", "your_due_at", "marked_at")}


@course.command("freeze")
@click.argument("name")
@click.argument("stage")
@click.option("--thaw", is_flag=True, help="Let the board move again.")
def freeze(name: str, stage: str, thaw: bool) -> None:
    """Freeze the board of STAGE in the course NAME, for its members. The service's own board of the stage goes on."""
    with server() as remote:
        found = remote.json("POST", of(name, "stages", stage, "freeze"), json={"frozen": not thaw})
    click.echo(f"frozen since {found['freezes_at']}" if found["freezes_at"] else "thawed")


@course.command("extend")
@click.argument("name")
@click.argument("stage")
@click.argument("handle")
@click.argument("due", type=MOMENT, metavar="TIME")
@click.option("--reason", default="", help="Why, for the staff.")
def extend(name: str, stage: str, handle: str, due: str, reason: str) -> None:
    """Give HANDLE until TIME for STAGE of the course NAME; `none` takes an extension back."""
    body = {"user": handle, "due_at": due or None, "reason": reason}
    with server() as remote:
        remote.json("POST", of(name, "stages", stage, "extensions"), json=body)
    click.echo(f"{handle}  {stage}  {due or 'no extension'}")


@course.command("announce")
@click.argument("name")
@click.argument("text")
def announce(name: str, text: str) -> None:
    """Announce TEXT to everybody in the course NAME."""
    with server() as remote:
        click.echo(f"announcement {remote.json('POST', of(name, 'announcements'), json={'text': text})['id']}")


@course.command("rejudge")
@click.argument("name")
@click.argument("stage")
@click.option("--verdict", default=None, help="Only submissions with this verdict.")
@click.option("--yes", is_flag=True, help="Do it; without, only say how many it would be.")
def rejudge(name: str, stage: str, verdict: str | None, yes: bool) -> None:
    """Judge what the members of the course NAME submitted to STAGE again."""
    body = {"dry_run": not yes, **({"verdict": verdict} if verdict else {})}
    with server() as remote:
        found = remote.json("POST", of(name, "stages", stage, "rejudge"), json=body)
    if not yes and not found["submissions"]:
        stop(Exit.FAILED, "nothing of that kind was submitted")
    click.echo(f"{found['submissions']} submissions {'are' if yes else 'would be'} judged again")
