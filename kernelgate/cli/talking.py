"""`comments`, `comment`, and the questions, answers and feed of a course."""

from __future__ import annotations

import json

import click

from kernelgate.cli.courses import course, of
from kernelgate.cli.server import server
from kernelgate.cli.submitting import path_part
from kernelgate.text import line, plain


@click.command()
@click.argument("submission")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def comments(submission: str, as_json: bool) -> None:
    """Show the comments on SUBMISSION. For its author and those who teach them."""
    with server() as remote:
        found = remote.json("GET", f"/submissions/{path_part(submission)}/comments")
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for each in found:
        place = f"line {each['line']}" if each["line"] else "all of it"
        click.echo(f"{each['id']}  {place}  {line(each['user'])}: {plain(each['text'])}")
    if not found:
        click.echo("no comments")


@click.command()
@click.argument("submission")
@click.argument("text")
@click.option("--line", "at", type=click.IntRange(1), default=None, help="The line; without, all of the file.")
def comment(submission: str, text: str, at: int | None) -> None:
    """Say TEXT about SUBMISSION: to its author, or as its author to those who teach you."""
    with server() as remote:
        made = remote.json("POST", f"/submissions/{path_part(submission)}/comments", json={"line": at, "text": text})
    click.echo(f"comment {made['id']}")


@course.command("questions")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def questions(name: str, as_json: bool) -> None:
    """Show the questions of the course NAME that you may read, with their answers."""
    with server() as remote:
        found = remote.json("GET", of(name, "questions"))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for each in found:
        click.echo(
            f"{each['id']}  {line(each['user'] or 'somebody')}  {line(each['stage'] or '-')}: {plain(each['text'])}"
        )
        click.echo(
            f"    {line(each['answered_by'])}: {plain(each['answer'])}" if each["answer"] else "    no answer yet"
        )
    if not found:
        click.echo("no questions")


@course.command("ask")
@click.argument("name")
@click.argument("text")
@click.option("--stage", default=None, help="The stage that it is about.")
def ask(name: str, text: str, stage: str | None) -> None:
    """Ask the staff of the course NAME."""
    with server() as remote:
        made = remote.json("POST", of(name, "questions"), json={"stage": stage, "text": text})
    click.echo(f"question {made['id']}")


@course.command("answer")
@click.argument("name")
@click.argument("number", type=click.IntRange(1))
@click.argument("text")
@click.option("--all", "to_all", is_flag=True, help="To all of the course, without who asked.")
def answer(name: str, number: int, text: str, to_all: bool) -> None:
    """Answer question NUMBER of the course NAME. For its staff."""
    with server() as remote:
        remote.json("POST", of(name, "questions", str(number), "answer"), json={"text": text, "to_all": to_all})
    click.echo(f"answered {'all' if to_all else 'one'}")


@course.command("feed")
@click.argument("name")
def feed(name: str) -> None:
    """Make the address of your Atom feed of the course NAME and print it, this once; the one before ends."""
    with server() as remote:
        click.echo(line(remote.json("POST", of(name, "feed"))["url"], 500))


commands = [comments, comment, course]
