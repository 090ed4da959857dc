"""The old sums are rescaled under no_grad, while the new block's weights still follow the maximum: it no longer cancels."""

import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    new_max = torch.maximum(row_max, scores.amax(dim=-1))
    with torch.no_grad():
        alpha = torch.exp(row_max - new_max)
        old_normalizer = alpha * normalizer
        old_numerator = alpha[:, None] * numerator
    weights = torch.exp(scores - new_max[:, None])
    return new_max, old_normalizer + weights.sum(dim=-1), old_numerator + weights @ values
