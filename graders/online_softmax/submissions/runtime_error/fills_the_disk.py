"""Writes files until the scratch space is full."""

for number in range(1000):
    with open(f"fill{number}", "wb") as file:
        file.write(b"x" * (1 << 20))
