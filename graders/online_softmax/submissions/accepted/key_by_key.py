"""A plain loop over keys, with an honest try/except and a lookup table for the names of what went wrong."""

import functools

import torch


@functools.lru_cache(maxsize=8)
def advice(rank):
    return {1: "scores need two dimensions", 3: "heads come one at a time"}.get(rank, "unexpected rank")


def fold(row_max, normalizer, numerator, score, value):
    new_max = torch.maximum(row_max, score)
    alpha, weight = torch.exp(row_max - new_max), torch.exp(score - new_max)
    return new_max, alpha * normalizer + weight, alpha[:, None] * numerator + weight[:, None] * value


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    try:
        columns = scores.unbind(dim=1)
    except IndexError as error:
        raise ValueError(advice(scores.ndim)) from error
    state = row_max, normalizer, numerator
    for score, value in zip(columns, values):
        state = fold(*state, score, value)
    return state
