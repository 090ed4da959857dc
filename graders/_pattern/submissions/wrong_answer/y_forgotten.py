def pattern(x, y, factor):
    return factor * x
