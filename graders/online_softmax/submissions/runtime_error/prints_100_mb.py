"""Prints far more than anybody reads."""

import sys

for _ in range(100):
    sys.stdout.write("x" * (1 << 20))
    sys.stdout.flush()
