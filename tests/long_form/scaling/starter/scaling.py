"""Scale and add: start here."""

import torch


def scaling(x: torch.Tensor, y: torch.Tensor, factor: float) -> torch.Tensor:
    """Returns factor * x + y, [rows, columns], in the dtype of x."""
    return torch.zeros_like(x)
