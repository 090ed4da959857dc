"""The vocabulary that the API, the worker and the command line share.

Nothing here imports fastapi, celery, torch or CUDA: a module belongs here only when two of the three need the same word.
"""

__version__ = "0.1.0"
