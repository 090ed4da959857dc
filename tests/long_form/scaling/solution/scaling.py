import torch


def scaling(x: torch.Tensor, y: torch.Tensor, factor: float) -> torch.Tensor:
    return factor * x + y
