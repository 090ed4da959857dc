"""Starts the warm interpreter: `python -I -S boot.py DESCRIPTOR JSON`, run by path with an interpreter that need not know us.

The package is loaded by its folder alone, under a name of its own and without executing its `__init__`: nothing else of the
service can be imported from there, in the interpreter or in any session that is forked from it.
"""

import importlib
import json
import os
import socket
import sys
import types


def main(descriptor: str, stated: str) -> None:
    package = types.ModuleType("sandbox")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules["sandbox"] = package
    zygote = importlib.import_module("sandbox.zygote")
    sys.argv[1:] = []
    wanted = json.loads(stated)
    zygote.serve(socket.socket(fileno=int(descriptor)), wanted["preload"], wanted["site"])


if __name__ == "__main__":
    main(*sys.argv[1:3])
