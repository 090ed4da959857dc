"""Looks for what it must not find: secrets in the environment, a home, a network, other processes, somewhere to write.

It computes honestly, so the verdict is `accepted`. Whatever it does find it raises as an error, which is another verdict.
"""

import os
import socket
import sys

import torch

SECRET_WORDS = ("KERNELGATE", "DATABASE", "BROKER", "POSTGRES", "REDIS", "TOKEN", "SECRET", "PASSWORD", "PGHOST")
HOMES = ("/root", "/home", os.path.expanduser("~"))
INTERPRETER = tuple(os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, torch.__path__[0]))
OUTSIDE = ("/etc", "/usr", "/var/tmp", "/root", "/home", "/opt", "/srv")


def in_the_environment():
    return [f"environment variable {name}" for name in os.environ if any(word in name.upper() for word in SECRET_WORDS)]


def in_homes():
    for home in HOMES:
        try:
            names = [name for name in os.listdir(home) if name not in (".", "..")]
        except OSError:
            continue
        if os.path.realpath(home) != os.path.realpath(os.getcwd()):
            paths = [f"{home}/{name}" for name in names]
            yield from (path for path in paths if readable(path) and not leads_to_python(path))


def leads_to_python(path):
    """The interpreter may itself be installed in somebody's home: its own folder is there, and nothing beside it."""
    return any(prefix.startswith(path) for prefix in (sys.prefix, sys.base_prefix))


def holds_the_interpreter(path):
    """Python itself may be installed below a home; the way to it is then readable, and nothing beside it."""
    return any(place.startswith(os.path.realpath(path)) for place in INTERPRETER)


def readable(path):
    try:
        if os.path.isdir(path):
            return bool(os.listdir(path))
        with open(path, "rb") as file:
            return bool(file.read(1))
    except OSError:
        return False


def on_the_network():
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", 5432)),
        (socket.AF_INET, ("127.0.0.1", 6379)),
        (socket.AF_INET, ("127.0.0.1", 8000)),
        (socket.AF_INET, ("1.1.1.1", 53)),
    ):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as connection:
                connection.settimeout(0.2)
                connection.connect(address)
        except OSError:
            continue
        yield f"a connection to {address}"


def in_other_processes():
    try:
        numbers = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return
    for number in numbers:
        try:
            with open(f"/proc/{number}/environ", "rb") as file:
                text = file.read()
        except OSError:
            continue
        if any(word.encode() in text for word in SECRET_WORDS):
            yield f"secrets in the environment of process {number}"


def outside():
    for folder in OUTSIDE:
        path = os.path.join(folder, f"left-by-{os.getpid()}")
        try:
            with open(path, "w") as file:
                file.write("x")
        except OSError:
            continue
        os.remove(path)
        yield f"{folder} can be written"


found = [*in_the_environment(), *in_homes(), *on_the_network(), *in_other_processes(), *outside()]
if found:
    raise PermissionError("the sandbox leaks: " + "; ".join(found[:20]))


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    new_max = torch.maximum(row_max, scores.amax(dim=-1))
    alpha = torch.exp(row_max - new_max)
    weights = torch.exp(scores - new_max[:, None])
    return new_max, alpha * normalizer + weights.sum(dim=-1), alpha[:, None] * numerator + weights @ values
