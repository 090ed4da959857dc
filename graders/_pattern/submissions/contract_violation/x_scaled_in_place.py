def pattern(x, y, factor):
    x *= factor
    return x + y
