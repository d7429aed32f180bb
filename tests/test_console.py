"""What is said of long work where output goes to a file."""

import math

from rbve import console


def clock(monkeypatch, *seconds):
    times = iter(seconds)
    monkeypatch.setattr(console.time, "monotonic", lambda: next(times))


def test_a_log_has_a_line_a_minute_with_share_and_time_left(monkeypatch, capsys):
    clock(monkeypatch, 0, 59, 61, 62, 180)
    with console.bar("training 2 runs", 100, "updates") as bar:
        bar.advance(20)
        bar.advance(5, latest=1.5)
        bar.advance(5, latest=2.0)
        bar.advance(20, latest=math.nan)
    assert capsys.readouterr().err.splitlines() == [
        "training 2 runs: 25%, 1 min, 3 min left, return 1.50",
        "training 2 runs: 50%, 3 min, 3 min left",
    ]


def test_a_log_counts_minutes_where_no_total_is_known(monkeypatch, capsys):
    clock(monkeypatch, 0, 120)
    with console.bar("reading a file", None, "") as bar:
        bar.advance(10)
    assert capsys.readouterr().err == "reading a file: 2 min\n"
