"""Grades CUDA C++ on a machine without a GPU: compiled for the CPU, executed and checked in the sandbox, judged outside."""
