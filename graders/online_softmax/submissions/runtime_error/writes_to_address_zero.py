"""Crashes the interpreter."""

import ctypes


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    ctypes.memset(0, 1, 1)
