"""`submit`, `run`, `result` and `cancel`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from kernelgate.cli.arguments import FILES
from kernelgate.cli.exits import Exit, stop
from kernelgate.cli.server import Server, server
from kernelgate.text import line
from kernelgate.verdicts import Verdict


@click.command()
@click.argument("stage")
@FILES
@click.option("--json", "as_json", is_flag=True, help="Print the finished submission as JSON and no progress.")
@click.option("--no-wait", is_flag=True, help="Print the submission's address and do not wait for its verdict.")
@click.option("--gpu", default=None, metavar="MODEL", help="Measure on this GPU model, where the server has several.")
@click.option("--key", default=None, metavar="KEY", help="Idempotency key: the same key and file submit only once.")
def submit(stage: str, files: tuple[Path, ...], as_json: bool, no_wait: bool, gpu: str | None, key: str | None) -> None:
    """Submit FILES to STAGE, watch it being judged, and print the evidence.

    A stage takes one file, or says that it takes several: these or a zip archive of them.

    The exit status is 0 only for the verdicts `accepted` and `correct`. Progress goes to the error stream, the evidence to
    standard output. Ctrl-C stops watching; the submission goes on, and `kernelgate result` shows it.
    """
    with server() as remote:
        form = {"stage": stage, **({"gpu": gpu} if gpu else {})}
        headers = {"Idempotency-Key": key} if key else {}
        sent = _read(files)
        made = remote.json("POST", "/submit", data=form, files=sent, headers=headers)
        if no_wait:
            click.echo(json.dumps(made, indent=2) if as_json else f"{made['id']}  {line(made['urls']['submission'])}")
            return
        if not as_json:
            click.echo(f"submission {made['id']}", err=True)
        _watch(remote, made["id"], quiet=as_json)
        finish(remote, made["id"], as_json=as_json)


@click.command()
@click.argument("stage")
@FILES
@click.option(
    "--case", default="first", show_default=True, metavar="NAME", help="The case to run, as the stage lists it."
)
@click.option("--inputs", default="", metavar="JSON", help="Values of your own: '{\"scores\": [[0, 1.5]]}'.")
@click.option("--json", "as_json", is_flag=True, help="Print the finished run as JSON and no progress.")
def run(stage: str, files: tuple[Path, ...], case: str, inputs: str, as_json: bool) -> None:
    """Run one case of STAGE with FILES on the server: its inputs, what came out, what should have, and what was printed.

    No attempt is counted and no board sees it. The exit status is that of `submit`: 0 where the case is right.
    """
    with server() as remote:
        form = {"stage": stage, "run": case, **({"inputs": inputs} if inputs else {})}
        sent = _read(files)
        made = remote.json("POST", "/submit", data=form, files=sent)
        _watch(remote, made["id"], quiet=as_json)
        finish(remote, made["id"], as_json=as_json)


def _read(files: tuple[Path, ...]) -> list[tuple[str, tuple[str, bytes, str]]]:
    return [("file", (file.name, file.read_bytes(), "application/octet-stream")) for file in files]


def _watch(remote: Server, submission_id: str, *, quiet: bool) -> None:
    try:
        for event in remote.events(submission_id):
            if not quiet:
                text = progress(event)
                if text:
                    click.echo(text, err=True)
    except KeyboardInterrupt:
        message = (
            f"\nnot watching any more; see `kernelgate result {submission_id}`, or `kernelgate cancel {submission_id}`"
        )
        stop(Exit.INTERRUPTED, message)


def progress(event: dict[str, Any]) -> str:
    """An event in a line; "" for one that says nothing new."""
    data = event.get("data", {})
    match event.get("kind"):
        case "state":
            note = f" ({line(str(data['note']))})" if data.get("note") else ""
            return f"{line(str(data.get('state')))}{note}"
        case "phase" if data.get("state") == "ended":
            return f"  {line(str(data.get('phase')))}  {float(data.get('ms') or 0):.0f} ms"
        case "case":
            count = f"{int(data.get('index', 0)) + 1}/{data.get('total')}"
            return f"  case {line(count)}  {line(str(data.get('state')))}  {line(str(data.get('name')))}"
        case "measure":
            numbers = [float(data.get(name) or 0) for name in ("speedup", "low", "high")]
            return "  {} pairs  {:.3f}x ({:.3f} to {:.3f})".format(line(str(data.get("pairs"))), *numbers)
    return ""


def finish(remote: Server, submission_id: str, *, as_json: bool) -> None:
    """Prints a finished submission and ends the command with its verdict's status."""
    body = remote.json("GET", f"/submissions/{submission_id}")
    if as_json:
        click.echo(json.dumps(body, indent=2))
    else:
        click.echo(remote.text(f"/submissions/{submission_id}", "text/plain"), nl=False)
    sys.exit(status_of(body))


def status_of(body: dict[str, Any]) -> int:
    """The exit status for a submission; 0 for one that is still waiting."""
    if body["state"] == "cancelled":
        return Exit.CANCELLED
    if body["state"] != "done":
        return 0
    try:
        return Verdict(body["verdict"]).about.exit_status
    except ValueError:
        stop(
            Exit.FAILED,
            f"the server knows the verdict {line(str(body['verdict']))!r}; this version does not: update it",
        )


@click.command()
@click.argument("id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print the submission as JSON.")
@click.option("--source", is_flag=True, help="Print the submitted file instead.")
@click.option("--wait", is_flag=True, help="Watch it until it is finished.")
def result(id: str, as_json: bool, source: bool, wait: bool) -> None:  # noqa: A002
    """Show the submission ID: its evidence, or that it still waits. The exit status is its verdict's."""
    with server() as remote:
        if source:
            click.echo(remote.answer("GET", f"/submissions/{path_part(id)}/source").content, nl=False)
            return
        if wait:
            remote.json("GET", f"/submissions/{path_part(id)}")
            _watch(remote, path_part(id), quiet=as_json)
        finish(remote, path_part(id), as_json=as_json)


@click.command()
@click.argument("id", metavar="ID")
def cancel(id: str) -> None:  # noqa: A002
    """Call the submission ID off. A running one is stopped within a second."""
    with server() as remote:
        body = remote.json("POST", f"/submissions/{path_part(id)}/cancel")
    click.echo("cancelled" if body["state"] == "cancelled" else "asked its worker to stop")


def path_part(text: str) -> str:
    """A word that stands in an address. Ends the command for anything with other characters."""
    if not text or not all(letter.isalnum() or letter in "_-" for letter in text) or not text.isascii():
        stop(Exit.USAGE, f"{line(text)!r} is no id or name: letters, digits, '_' and '-'")
    return text


commands = [submit, run, result, cancel]
