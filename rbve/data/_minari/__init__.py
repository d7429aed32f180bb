"""Minari datasets, read and written without the minari package."""
