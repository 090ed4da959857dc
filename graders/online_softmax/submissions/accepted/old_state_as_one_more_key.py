"""The old state is one more key: its score is the old maximum, its weight the old mass, its value the old mean."""

import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    everything = torch.cat([row_max[:, None], scores], dim=1)
    new_max, _ = torch.max(everything, dim=1)
    weights = torch.exp(everything - new_max[:, None])
    old, new = weights[:, :1], weights[:, 1:]
    return new_max, (old[:, 0] * normalizer) + new.sum(1), old * numerator + torch.matmul(new, values)
