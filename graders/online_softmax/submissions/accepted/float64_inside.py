"""Computes in float64 and hands back what was asked for."""

import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    wanted = scores.dtype
    m, l, u, s, v = (part.to(torch.float64) for part in (row_max, normalizer, numerator, scores, values))
    new_max = torch.maximum(m, s.amax(dim=-1))
    alpha = torch.exp(m - new_max)
    weights = torch.exp(s - new_max[:, None])
    results = new_max, alpha * l + weights.sum(dim=-1), alpha[:, None] * u + weights @ v
    return tuple(part.to(wanted) for part in results)
