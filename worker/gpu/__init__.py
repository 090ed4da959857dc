"""Everything that speaks of a card: its backend, its bench process, its lock, its health. No CUDA context lives here."""
