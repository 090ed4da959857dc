"""The ways in which online_softmax's cases call the update, beside the submission: collected, nothing is judged here."""

import block_attention
import torch
from contract import Violation


def reuse(update, row_max, normalizer, numerator, scores, values, other_scores, other_values):
    """One state, three calls: a block, another block, and the first block again."""
    blocks = (scores, values), (other_scores, other_values), (scores, values)
    return tuple(part.clone() for block in blocks for part in update(row_max, normalizer, numerator, *block))


def trace(update, scores, values, blocks):
    """From the empty state through blocks of the given widths; the state after every block, then the result."""
    rows = len(scores)
    state = scores.new_full((rows,), float("-inf")), scores.new_zeros(rows), scores.new_zeros(rows, values.shape[1])
    states = []
    for block in zip(scores.split(blocks, 1), values.split(blocks), strict=True):
        state = update(*state, *block)
        states.append(state)
    return *(torch.stack(parts) for parts in zip(*states, strict=True)), *finished(state)


def attention(update, q, k, v, block_size):
    block_attention.passed_on = update.passed_on
    return block_attention.block_attention(q, k, v, block_size)


def sizes(update, q, k, v, block_sizes):
    """The same tokens with several block sizes."""
    runs = [attention(update, q, k, v, size) for size in block_sizes]
    return tuple(torch.stack(parts) for parts in zip(*runs, strict=True))


def update_gradient(update, row_max, normalizer, numerator, scores, values, output_weight, logsumexp_weight):
    """Through one call. Without row_max: its value is bookkeeping, results do not depend on it."""
    leaves = differentiable(normalizer=normalizer, numerator=numerator, scores=scores, values=values)
    return gradients(*finished(update(row_max, *leaves.values())), leaves, output_weight, logsumexp_weight)


def attention_gradient(update, q, k, v, output_weight, logsumexp_weight, block_size):
    leaves = differentiable(q=q, k=k, v=v)
    results = attention(update, *leaves.values(), block_size)
    return gradients(*results, leaves, output_weight, logsumexp_weight)


def finished(state):
    row_max, normalizer, numerator = state
    return numerator / normalizer[:, None], row_max + torch.log(normalizer)


def differentiable(**tensors):
    return {name: tensor.detach().requires_grad_() for name, tensor in tensors.items()}


def gradients(output, logsumexp, leaves, *weights):
    """Both results, then the gradients of sum(output * output_weight) and of sum(logsumexp * logsumexp_weight)."""
    collected = [output.detach(), logsumexp.detach()]
    for name, result, weight in zip(("output", "logsumexp"), (output, logsumexp), weights, strict=True):
        if not result.requires_grad:
            raise Violation(
                "no_gradient",
                f"{name} has no gradient: autograd saw no path from {', '.join(leaves)} to it. Accepted is a result of "
                "torch operations on the arguments, without detach(), torch.no_grad(), .data, numpy or item()",
            )
        # A path that was cut for one input alone counts as a gradient of 0, so that the judge can say which it is.
        found = torch.autograd.grad(
            (result * weight).sum(), list(leaves.values()), retain_graph=True, allow_unused=True, materialize_grads=True
        )
        collected += found
    return tuple(collected)
