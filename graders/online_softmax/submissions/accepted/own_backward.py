"""A torch.autograd.Function with its own derivative."""

import torch


class Update(torch.autograd.Function):
    @staticmethod
    def forward(ctx, row_max, normalizer, numerator, scores, values):
        new_max = torch.maximum(row_max, scores.amax(dim=-1))
        alpha = torch.exp(row_max - new_max)
        weights = torch.exp(scores - new_max[:, None])
        ctx.save_for_backward(alpha, weights, values)
        ctx.mark_non_differentiable(new_max)
        return new_max, alpha * normalizer + weights.sum(dim=-1), alpha[:, None] * numerator + weights @ values

    @staticmethod
    def backward(ctx, _, d_normalizer, d_numerator):
        alpha, weights, values = ctx.saved_tensors
        d_weights = d_normalizer[:, None] + d_numerator @ values.T
        return None, alpha * d_normalizer, alpha[:, None] * d_numerator, weights * d_weights, weights.T @ d_numerator


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    return Update.apply(row_max, normalizer, numerator, scores, values)
