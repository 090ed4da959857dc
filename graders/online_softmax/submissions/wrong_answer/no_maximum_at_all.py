"""A plain sum of exponentials, with a maximum that is only reported."""

import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    new_max = torch.maximum(row_max, scores.amax(dim=-1))
    weights = torch.exp(scores)
    new_normalizer = normalizer + weights.sum(dim=-1)
    new_numerator = numerator + weights @ values
    return new_max, new_normalizer, new_numerator
