"""Asks a torch that was built for CUDA, once and early, how many GPUs there are: none, in a sandbox.

It says so as a warning at the first question, which may come from autograd or from a default that a submission changes, and
keeps the answer. Where the submission had made warnings errors, that warning would end an honest file on such hosts alone.
"""

import contextlib
import warnings

import torch


def count():
    """Whatever the driver says of a host whose GPUs are out of reach is nobody's mistake here."""
    ask = getattr(torch._C, "_cuda_getDeviceCount", None)
    if ask is not None:
        with warnings.catch_warnings(), contextlib.suppress(RuntimeError):
            warnings.simplefilter("ignore")
            ask()
