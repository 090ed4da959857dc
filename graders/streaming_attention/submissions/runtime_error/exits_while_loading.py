"""Ends the process with a good status as it is imported."""

import os

os._exit(0)
