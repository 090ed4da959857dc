"""Imports a package that is not there."""

import a_package_that_nobody_has
import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    return a_package_that_nobody_has.update(torch, row_max, normalizer, numerator, scores, values)
