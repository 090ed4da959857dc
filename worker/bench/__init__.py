"""The trusted measuring process: a program of its own (`python -m worker.bench`), the only one with a CUDA context.

A worker starts it and speaks to it in frames; it never imports this package. One process serves one submission.
"""
