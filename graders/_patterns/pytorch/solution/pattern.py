"""Scale and add: start here."""

import torch


def pattern(x: torch.Tensor, y: torch.Tensor, factor: float) -> torch.Tensor:
    """Returns factor * x + y, [rows, width]."""
    return factor * x + y
