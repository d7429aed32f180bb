"""Logs: tables with one row per decision, read in a survey and a reading pass.

options    what a user says: which column is what (roles), how values are read
table      what a file format has to offer (Log); text files as such; types: of their columns
resolve    the options against the columns a file has, and whether their types suit
survey     the first pass (gather), and what follows from it: actions, features, types (infer)
chunks     the second pass: batches to NumPy columns (values); order: whole episodes of them
episodes   whole episodes to parts of a Dataset, after checks
read       the whole
write      the way back: parts to tables
"""

from rbve.data.logs.options import LogOptions
from rbve.data.logs.read import read_log

__all__ = ["LogOptions", "read_log"]
