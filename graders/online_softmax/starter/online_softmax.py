"""Online softmax: fold one block of attention scores into a running state.

Submit this file. `block_attention.py`, which is provided, walks the tiles of an attention and calls
`online_softmax_update` once per key block; with both files in one folder you can try it yourself:

    >>> import torch
    >>> from block_attention import block_attention
    >>> q, k, v = torch.tensor([[1.0]]), torch.tensor([[1.0], [3.0]]).log(), torch.tensor([[2.0], [6.0]])
    >>> block_attention(q, k, v, block_size=1)
"""

import torch


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    """Returns the state after one more block of keys, as the tuple (new_max, new_normalizer, new_numerator).

    Arguments, all of one dtype (float32 or float64) on one device:
        row_max     [Q]      largest score of each query row so far; -inf before the first block
        normalizer  [Q]      sum of exp(score - row_max) over the keys so far; 0 before the first block
        numerator   [Q, Dv]  sum of exp(score - row_max) * value over the keys so far; 0 before the first block
        scores      [Q, K]   this block's scores, already scaled; finite, K >= 1
        values      [K, Dv]  this block's values

    Results, as plain tensors of the same dtype on the same device:
        new_max        [Q]      largest score including this block
        new_normalizer [Q]      the sum over all keys so far, relative to new_max
        new_numerator  [Q, Dv]  the weighted sum over all keys so far, relative to new_max; not yet divided

    The five arguments must be left as they were, and autograd must reach every one of them: whoever differentiates the
    finished attention differentiates through all the blocks.
    """
    # This much is right for the first block only: it forgets whatever the state already holds.
    new_max = scores.amax(dim=-1)
    weights = torch.exp(scores - new_max[:, None])
    new_normalizer = weights.sum(dim=-1)
    new_numerator = weights @ values
    return new_max, new_normalizer, new_numerator
