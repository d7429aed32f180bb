"""Logs: tables with one row per decision, read in a survey and a reading pass.

roles      what a user says: which column is what, how values are read; what each role is
table      what a file format has to offer (Log); text files as such; types: of their columns
resolve    the options against the columns a file has, and whether their types suit
survey     the first pass; infer: what its figures say of actions, features and types
chunks     the second pass: batches to NumPy columns (values), then tables of whole episodes
episodes   the whole: parts of a Dataset, after checks
write      the way back: parts to tables
"""

from rbve.data.logs.episodes import read_log
from rbve.data.logs.roles import LogOptions

__all__ = ["LogOptions", "read_log"]
