"""Logs: tables with one row per decision, read in a survey and a reading pass.

options    which column is what
log        what a file format has to offer; the reporter of faults
text       text files as such a log; dialect: what separates their fields; kinds: the types of
           their columns; moments: times by a format
roles      the options against the columns a file has; fit: whether their types suit
survey     the action set, categories and statistics (gather), over the whole file
columns    batches to NumPy columns (values)
cut        where episodes begin
episodes   whole episodes to parts of a Dataset, after checks
rows       the way back: parts to tables
"""

from rbve.data.logs.options import Options, from_toml
from rbve.data.logs.read import read_log

__all__ = ["Options", "from_toml", "read_log"]
