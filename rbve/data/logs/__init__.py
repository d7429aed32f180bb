"""Logs: tables with one row per decision, read in a survey and a reading pass.

    options    which column is what
    roles      the options against the columns a file has
    survey     statistics, categories and the action set, over the whole file
    values     Arrow columns to NumPy columns
    episodes   rows cut into episodes, episodes gathered into parts
    text       the types of a text file's columns
    rows       the way back: parts to tables

A file format only opens its file as a Log (see log.py).
"""

from rbve.data.logs.options import Options, from_toml
from rbve.data.logs.read import read_log

__all__ = ["Options", "from_toml", "read_log"]
