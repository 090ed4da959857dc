"""`login` and `logout`."""

from __future__ import annotations

import sys

import click

from kernelgate.cli import credentials
from kernelgate.cli.credentials import Credentials
from kernelgate.cli.exits import Exit, stop
from kernelgate.cli.server import Server
from kernelgate.text import line


@click.command()
@click.argument("url", required=False)
@click.option("--token-from-stdin", is_flag=True, help="Read the token from standard input, for scripts.")
def login(url: str | None, token_from_stdin: bool) -> None:
    """Store the address of a server and a token for it, after trying both.

    URL is the server's address; without it the one of KERNELGATE_URL, the one stored last, or http://127.0.0.1:8000. The token
    is asked for and not shown; it is never an argument, because other users of a machine can read those. Both go into a
    file that only you can read. KERNELGATE_URL and KERNELGATE_TOKEN override it.
    """
    address = (url or credentials.load().url).rstrip("/")
    token = sys.stdin.readline() if token_from_stdin else click.prompt(f"Token for {line(address)}", hide_input=True)
    if not token.strip().isascii() or not token.strip():
        stop(Exit.USAGE, "that is no token: it starts with kg_")
    remote = Server(Credentials(address, token.strip(), "the prompt"))
    try:
        me = remote.json("GET", "/me")
    finally:
        remote.close()
    stored = credentials.store(address, token.strip())
    click.echo(f"signed in to {line(address)} as {line(me['handle'])} ({line(me['role'])}); stored in {stored}")


@click.command()
def logout() -> None:
    """Forget the stored address and token. The token itself stays valid; revoke it to end it."""
    click.echo("forgotten" if credentials.forget() else "nothing was stored")


commands = [login, logout]
