def scaling(x, y, factor):
    x *= factor
    return x + y
