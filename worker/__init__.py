"""The grading side: claims submissions, runs them in the sandbox and judges what came out."""

import os

# Read when numpy is loaded, so set before any module of this package loads it. References are computed beside the compiler
# and beside one another: a BLAS thread on every core would spin in their way, and they take several times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", str(max(1, len(os.sched_getaffinity(0)) // 4)))
