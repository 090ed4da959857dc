"""Takes memory and touches it, until there is none left."""

kept = []
while True:
    kept.append(b"x" * (64 << 20))
