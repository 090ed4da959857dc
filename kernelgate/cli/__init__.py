"""The `kernelgate` command. What it can do comes from plug-ins, its own commands included.

A plug-in is a list of click commands named by an entry point of the group `kernelgate.commands`. One that cannot be loaded
costs its own commands and a warning, never the command line.
"""

from __future__ import annotations

from kernelgate.cli.plugins import Commands

main = Commands(
    name="kernelgate",
    help="Grade GPU kernels: submit them, watch them being judged, run the service.",
    epilog="Exit statuses are listed in docs/cli.md: 0 only for `accepted` and `correct`, one of its own for every "
    "other verdict.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
