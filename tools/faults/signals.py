"""SIGTERM and SIGINT at random moments: a checkpoint, a line and an exit code."""

from __future__ import annotations

import signal

from _case import TRAIN, Case, demand_equal, demand_one_line

_WORDS = {signal.SIGTERM: "terminated", signal.SIGINT: "interrupted"}
_TIMES = 3  # of each


def stopped_trainer(case: Case) -> str:
    """Exit codes 143 and 130; the same command goes on and ends as if it had not been stopped."""
    train = ("train", case.catch(), *TRAIN, "--out")
    whole, seconds = case.whole("runs", *train)
    stops = 0
    for number, word in _WORDS.items():
        for time in range(_TIMES):
            out = case.folder / f"{word}{time}"
            for _ in range(2):
                after = case.moments.uniform(0.2, 0.7) * seconds
                ended = case.run(*train, out, after=after, signal=number)
                if ended.code == 0:
                    break
                demand_one_line(ended, f"{word}; what was finished is kept", 128 + number)
                stops += 1
            case.done(*train, out)
            demand_equal(out, whole)
    return f"{stops} signals, {len(_WORDS) * _TIMES * 2} runs equal byte for byte"
