"""Leaves process-wide settings changed, which is rude and harmless: seeds, default dtype, gradient mode, threads."""

import random
import warnings

import numpy
import torch

random.seed(0)
numpy.random.seed(0)
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.set_num_threads(1)
warnings.simplefilter("error")


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    new_max = torch.maximum(row_max, scores.amax(dim=-1))
    alpha = torch.exp(row_max - new_max)
    weights = torch.exp(scores - new_max[:, None])
    return new_max, alpha * normalizer + weights.sum(dim=-1), alpha[:, None] * numerator + weights @ values
