"""All tables: who imports this has every one of them in `metadata`."""

from kernelgate import contests, models, outbox, talk

metadata = models.Base.metadata

__all__ = ["contests", "metadata", "models", "outbox", "talk"]
