"""Calls itself until Python gives up."""


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    return online_softmax_update(row_max, normalizer, numerator, scores, values)
