"""Powers of 2 on scores times log2(e), as fast kernels do; the state keeps natural units."""

import math

import torch

LOG2_E = 1.0 / math.log(2.0)


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    new_max = torch.maximum(row_max, scores.amax(dim=-1))
    alpha = torch.exp2((row_max - new_max) * LOG2_E)
    weights = torch.exp2((scores - new_max[:, None]) * LOG2_E)
    return new_max, alpha * normalizer + weights.sum(dim=-1), alpha[:, None] * numerator + weights @ values
