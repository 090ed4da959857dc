"""From raw bytes to a verdict: what every backend shares, and what no sandboxed process ever sees."""
