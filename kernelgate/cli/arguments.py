"""What several commands are called with."""

from __future__ import annotations

from pathlib import Path

import click

FILES = click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
"""A submission: one file, or several where its stage takes them."""
