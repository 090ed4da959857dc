"""Takes the state as one tuple."""

import torch


def online_softmax_update(state, scores, values):
    row_max, normalizer, numerator = state
    new_max = torch.maximum(row_max, scores.amax(dim=-1))
    return new_max, normalizer, numerator
