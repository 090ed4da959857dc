"""The block's weights are relative to the block's own maximum."""

import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    block_max = scores.amax(dim=-1)
    new_max = torch.maximum(row_max, block_max)
    alpha = torch.exp(row_max - new_max)
    weights = torch.exp(scores - block_max[:, None])
    new_normalizer = alpha * normalizer + weights.sum(dim=-1)
    new_numerator = alpha[:, None] * numerator + weights @ values
    return new_max, new_normalizer, new_numerator
