def scaling(x, y, factor):
    return factor * x
