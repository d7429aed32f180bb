"""What is said of long work where output goes to a file."""

import math

from rbve.cli import _console as console


def log(what, total, *seconds):
    return console.Log(what, total, clock=iter(seconds).__next__)


def test_a_log_has_a_line_a_minute_with_share_and_time_left(capsys):
    bar = log("training 2 runs", 100, 0, 59, 61, 62, 180)
    bar.advance(20)
    bar.advance(5, latest=1.5)
    bar.advance(5, latest=2.0)
    bar.advance(20, latest=math.nan)
    assert capsys.readouterr().err.splitlines() == [
        "training 2 runs: 25%, 1 min, 3 min left, return 1.50",
        "training 2 runs: 50%, 3 min, 3 min left",
    ]


def test_a_log_follows_a_total_that_shows_as_work_goes_on(capsys):
    bar = log("reading a file", None, 0, 120, 240)
    bar.reach(10, 0)
    bar.reach(30, 40)
    assert capsys.readouterr().err.splitlines() == [
        "reading a file: 2 min",
        "reading a file: 75%, 4 min, 1 min left",
    ]


def test_no_estimate_until_enough_is_known(capsys):
    """Compilation comes before the first report, and early ones may come in a burst."""
    bar = log("training", 10_000, 0, 70, 71, 135, 200)
    bar.advance(1)  # after a minute of compilation: 11,000 minutes at that rate
    bar.advance(1)
    bar.advance(5)
    bar.advance(3000)
    assert capsys.readouterr().err.splitlines() == [
        "training: 0%, 1 min",
        "training: 0%, 2 min",
        "training: 30%, 3 min, 5 min left",
    ]


def test_output_that_is_no_terminal_gets_a_log():
    with console.bar("work", None, "") as bar:
        assert isinstance(bar, console.Log)
