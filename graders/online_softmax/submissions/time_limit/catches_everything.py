"""Never returns, and holds on to the process: ignores signals and swallows every exception."""

import signal
import time

for number in range(1, signal.NSIG):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass


def online_softmax_update(row_max, normalizer, numerator, scores, values):
    while True:
        try:
            time.sleep(60)
        except BaseException:
            continue
