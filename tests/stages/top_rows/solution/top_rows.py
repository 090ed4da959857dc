import torch


def top_rows(x, k):
    values, places = torch.topk(x, k, dim=1)
    return values, places
