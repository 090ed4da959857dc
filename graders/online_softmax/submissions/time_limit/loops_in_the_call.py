"""Never returns."""


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    while True:
        pass
