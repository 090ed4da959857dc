"""The subtracted maximum is bookkeeping: whatever it is, it cancels in both results. So it needs no gradient."""

import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    with torch.no_grad():
        new_max = torch.max(row_max, scores.max(dim=1).values)
        alpha = torch.exp(row_max - new_max).unsqueeze(1)
    weights = (scores - new_max.unsqueeze(1)).exp()
    return (
        new_max,
        normalizer * alpha.squeeze(1) + weights.sum(1),
        torch.addmm(numerator * alpha, weights, values),
    )
