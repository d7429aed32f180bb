"""Logged data: Episode → Dataset (columns + episode offsets) → transition columns."""

from rbve.data.dataset import Dataset, Episode
from rbve.data.formats import load, write
from rbve.data.transitions import Transitions, View, transitions

__all__ = ["Dataset", "Episode", "Transitions", "View", "load", "transitions", "write"]
