"""An nn.Module that returns a named tuple, called through a function of the asked-for name."""

from typing import NamedTuple

import torch
from torch import nn


class State(NamedTuple):
    new_max: torch.Tensor
    new_normalizer: torch.Tensor
    new_numerator: torch.Tensor


class OnlineSoftmax(nn.Module):
    def forward(self, old: State, scores: torch.Tensor, values: torch.Tensor) -> State:
        block = self.block(scores, values)
        return self.merge(old, block)

    @staticmethod
    def block(scores, values):
        top = scores.amax(dim=-1)
        weights = torch.exp(scores - top[:, None])
        return State(top, weights.sum(dim=-1), weights @ values)

    @staticmethod
    def merge(left, right):
        """Symmetric: both sides are brought to the common maximum."""
        top = torch.maximum(left.new_max, right.new_max)
        from_left, from_right = torch.exp(left.new_max - top), torch.exp(right.new_max - top)
        return State(
            top,
            from_left * left.new_normalizer + from_right * right.new_normalizer,
            from_left[:, None] * left.new_numerator + from_right[:, None] * right.new_numerator,
        )


_layer = OnlineSoftmax()


def online_softmax_update(
    row_max: torch.Tensor,
    normalizer: torch.Tensor,
    numerator: torch.Tensor,
    scores: torch.Tensor,
    values: torch.Tensor,
) -> State:
    return _layer(State(row_max, normalizer, numerator), scores, values)
