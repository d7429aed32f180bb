"""Experiments as declarative data: which datasets, which methods, how long."""
