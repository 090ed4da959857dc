"""Everything that speaks of a card: the players that hold it, and the measurement that times two of them in turn."""
