"""A bracket is missing."""

import torch


def streaming_attention(q, k, v, *, causal=False, block_n=32:
    return torch.empty_like(q)
