"""`admin`: what an administrator's pages do, for scripts. It needs a token with the scope `admin`."""

from __future__ import annotations

import json
from typing import Any

import click

from kernelgate.cli.reading import table
from kernelgate.cli.server import server
from kernelgate.cli.submitting import path_part
from kernelgate.text import line

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def admin() -> None:
    """Look after the service: stages, submissions, webhooks, the audit log. Needs a token with the scope `admin`."""


@admin.command("stages")
@_JSON
def stages(as_json: bool) -> None:
    """List the stages by the names of their folders, with their states, and the folders that cannot be used."""
    with server() as remote:
        found = remote.json("GET", "/admin/stages")
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [["STAGE", "STATE", "TITLE"]]
    rows += [[line(each["name"]), _state(each), line(each["title"])] for each in found["stages"]]
    rows += [[line(name), "broken", line(why, 300)] for name, why in found["broken"].items()]
    click.echo(table(rows))


def _state(stage: dict[str, Any]) -> str:
    proof = f" {stage['proof']}" if stage.get("proof") else ""
    by = f" by {line(stage['closed_by'], 60)}" if stage["state"] == "closed" and stage.get("closed_by") else ""
    state = "draft" if stage["draft"] else f"{stage['state'].replace('_', ' ')}{by}{proof}"
    return f"{state}, board frozen" if stage["frozen_at"] else state


@admin.command("stage")
@click.argument("name")
@click.option("--open/--close", "enabled", default=None, help="Let it take submissions, or not.")
@click.option("--freeze/--thaw", "frozen", default=None, help="Let its board stand still, or move.")
def stage(name: str, enabled: bool | None, frozen: bool | None) -> None:
    """Open or close the stage NAME, freeze or thaw its board."""
    body = {key: value for key, value in (("enabled", enabled), ("frozen", frozen)) if value is not None}
    with server() as remote:
        click.echo(f"{name}  {_state(remote.json('POST', f'/admin/stages/{path_part(name)}', json=body))}")


@admin.command("submissions")
@click.option("--stage", default=None, help="Only this stage's.")
@click.option("--verdict", default=None, help="Only with this verdict.")
@click.option("--user", default=None, help="Only this account's.")
@click.option("--mistake", default=None, help="Only with this named mistake.")
@click.option("--apart", type=click.Choice(["hidden", "held"]), default=None, help="Only those that are set apart.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 200), help="How many.")
@_JSON
def submissions(limit: int, as_json: bool, **given: str | None) -> None:
    """List everybody's submissions, the newest first."""
    asked = {key: value for key, value in given.items() if value is not None}
    with server() as remote:
        found = remote.json("GET", "/admin/submissions", params={**asked, "limit": str(limit)})
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [["SUBMISSION", "WHEN", "WHO", "STAGE", "VERDICT", "APART"]]
    for each in found["items"]:
        apart = "hidden" if each["hidden"] else "held" if each["held"] else ""
        verdict = each["verdict"] or each["state"]
        rows.append(
            [each["id"], each["created_at"][:16], *(line(each[key]) for key in ("user", "stage")), verdict, apart]
        )
    click.echo(table(rows) if found["items"] else "nothing matches")
    if found["next"]:
        click.echo("… older ones: --json names the next page", err=True)


@admin.command("hide")
@click.argument("submission")
@click.option("--show", is_flag=True, help="Show it again.")
def hide(submission: str, show: bool) -> None:
    """Hide SUBMISSION from boards and from everybody but its owner and staff."""
    with server() as remote:
        remote.json("POST", f"/admin/submissions/{path_part(submission)}/hide", json={"hidden": not show})
    click.echo(f"{submission}  {'shown' if show else 'hidden'}")


@admin.command("rejudge")
@click.argument("submission")
def rejudge(submission: str) -> None:
    """Judge SUBMISSION again; the old result stays stored."""
    with server() as remote:
        found = remote.json("POST", f"/admin/submissions/{path_part(submission)}/rejudge")
    click.echo(f"{found['id']}  round {found['round']}")


@admin.command("rejudge-stage")
@click.argument("name")
@click.option("--verdict", default=None, help="Only submissions with this verdict.")
@click.option("--yes", is_flag=True, help="Do it; without, only say how many it would be.")
def rejudge_stage(name: str, verdict: str | None, yes: bool) -> None:
    """Judge everybody's submissions to the stage NAME again; the old results stay stored."""
    body = {"dry_run": not yes, **({"verdict": verdict} if verdict else {})}
    with server() as remote:
        found = remote.json("POST", f"/admin/stages/{path_part(name)}/rejudge", json=body)
    click.echo(f"{found['submissions']} submissions {'are' if yes else 'would be'} judged again")


@admin.command("audit")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 500), help="How many lines.")
@_JSON
def audit(limit: int, as_json: bool) -> None:
    """Show the audit log, the newest line first."""
    with server() as remote:
        found = remote.json("GET", "/admin/audit", params={"limit": str(limit)})
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for each in found["items"]:
        said = ", ".join(f"{key}={line(str(value), 60)}" for key, value in each["data"].items())
        click.echo(f"{each['at'][:19]}  {line(each['actor'])}  {line(each['action'])}  {line(each['target'])}  {said}")


@admin.command("webhooks")
@click.option("--add", metavar="URL", default=None, help="Tell URL of the events; prints its secret, this once.")
@click.option("--event", "events", multiple=True, help="first_accepted, record or judge_error; without, all three.")
@click.option("--test", "test", type=click.IntRange(1), default=None, metavar="NUMBER", help="Send a test of one.")
@click.option("--remove", type=click.IntRange(1), default=None, metavar="NUMBER", help="Remove one.")
def webhooks(add: str | None, events: tuple[str, ...], test: int | None, remove: int | None) -> None:
    """Show the webhooks of the whole service; a course has its own."""
    chosen = list(events) or ["first_accepted", "record", "judge_error"]
    with server() as remote:
        if add is not None:
            made = remote.json("POST", "/admin/webhooks", json={"url": add, "events": chosen})
            click.echo(line(made["secret"], 500))
            return
        for number, what in ((test, "test"), (remove, "remove")):
            if number is not None:
                remote.answer("POST", f"/admin/webhooks/{number}/{what}")
        for each in remote.json("GET", "/admin/webhooks"):
            click.echo(f"{each['id']}  {line(each['url'], 500)}  {', '.join(each['events'])}")


commands = [admin]
