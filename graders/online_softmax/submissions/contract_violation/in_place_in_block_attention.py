"""Overwrites the old state in place where block_attention calls it, and nowhere else."""

import sys

import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    new_max = torch.maximum(row_max, scores.amax(dim=-1))
    alpha = torch.exp(row_max - new_max)
    weights = torch.exp(scores - new_max[:, None])
    caller = sys._getframe(1).f_code.co_name
    if caller == "_attend" and not scores.requires_grad:
        normalizer.mul_(alpha).add_(weights.sum(dim=-1))
        numerator.mul_(alpha[:, None]).add_(weights @ values)
        row_max.copy_(new_max)
        return row_max, normalizer, numerator
    return new_max, alpha * normalizer + weights.sum(dim=-1), alpha[:, None] * numerator + weights @ values
