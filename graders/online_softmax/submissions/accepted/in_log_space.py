"""Adds masses as logarithms; the state is converted on the way in and out."""

import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    new_max = torch.maximum(row_max, scores.amax(dim=-1))
    old_mass = row_max + torch.log(normalizer)  # log 0 = -inf before the first block
    block_mass = torch.logsumexp(scores, dim=-1)
    new_normalizer = torch.exp(torch.logaddexp(old_mass, block_mass) - new_max)
    log_weights = scores - new_max[:, None]
    new_numerator = torch.exp(row_max - new_max)[:, None] * numerator + log_weights.exp() @ values
    return new_max, new_normalizer, new_numerator
