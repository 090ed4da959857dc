"""A bracket is not closed."""

import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    new_max = torch.maximum(row_max, scores.amax(dim=-1)
    return new_max, normalizer, numerator
