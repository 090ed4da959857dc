"""Right values under no_grad: nothing can be differentiated."""

import torch


@torch.no_grad()
def online_softmax_update(row_max, normalizer, numerator, scores, values):
    new_max = torch.maximum(row_max, scores.amax(dim=-1))
    alpha = torch.exp(row_max - new_max)
    weights = torch.exp(scores - new_max[:, None])
    return new_max, alpha * normalizer + weights.sum(dim=-1), alpha[:, None] * numerator + weights @ values
