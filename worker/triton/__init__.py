"""Grades Triton submissions: host code recorded without data, kernels replayed on a GPU or interpreted (docs/triton.md)."""
