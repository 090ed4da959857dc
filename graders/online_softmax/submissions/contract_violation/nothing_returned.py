"""Computes and returns nothing."""

import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    new_max = torch.maximum(row_max, scores.amax(dim=-1))
    alpha = torch.exp(row_max - new_max)
    weights = torch.exp(scores - new_max[:, None])
    new_normalizer = alpha * normalizer + weights.sum(dim=-1)
    new_numerator = alpha[:, None] * numerator + weights @ values
    return None
