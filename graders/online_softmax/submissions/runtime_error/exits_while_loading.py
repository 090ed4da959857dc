"""Leaves with status 0 before anything was asked."""

import os

os._exit(0)
