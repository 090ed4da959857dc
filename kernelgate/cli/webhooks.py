"""`course webhooks`: telling other programs of what happens in a course."""

from __future__ import annotations

import json

import click

from kernelgate.cli.courses import course, of
from kernelgate.cli.server import server
from kernelgate.text import line


@course.command("webhooks")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--test", "test", type=click.IntRange(1), default=None, metavar="NUMBER", help="Send a test of one.")
@click.option("--remove", type=click.IntRange(1), default=None, metavar="NUMBER", help="Remove one.")
def webhooks(name: str, as_json: bool, test: int | None, remove: int | None) -> None:
    """Show the webhooks of the course NAME and what came of their last deliveries."""
    with server() as remote:
        for number, what in ((test, "test"), (remove, "remove")):
            if number is not None:
                remote.answer("POST", of(name, "webhooks", str(number), what))
        found = remote.json("GET", of(name, "webhooks"))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for each in found:
        off = f"  off since {each['off_at']}" if each["off_at"] else ""
        click.echo(f"{each['id']}  {line(each['url'], 500)}  {', '.join(each['events'])}{off}")
        for one in each["deliveries"]:
            click.echo(f"    {one['created_at'][:19]}  {one['event']}  {one['tries']} tries  {line(one['answer'])}")
    if not found:
        click.echo("no webhooks")


@course.command("webhook")
@click.argument("name")
@click.argument("url")
@click.option("--event", "events", multiple=True, help="first_accepted, record or judge_error; without, all three.")
def webhook(name: str, url: str, events: tuple[str, ...]) -> None:
    """Tell URL of what happens in the course NAME; prints the secret that deliveries are signed with, this once."""
    chosen = list(events) or ["first_accepted", "record", "judge_error"]
    with server() as remote:
        made = remote.json("POST", of(name, "webhooks"), json={"url": url, "events": chosen})
    click.echo(line(made["secret"], 500))


commands = [course]
