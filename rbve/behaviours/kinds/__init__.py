"""Behaviours, one file each; a file's presence is its registration.

A file holds a class that is a rbve.behaviours.record.Behaviour, and

    ORDER          its place among those that are asked
    LEARNS         whether the agent learns while it acts: it may go by steps, and has its own ε
    PRESETS        names of its settings for a benchmark, if there are any
    claim(asked)   the behaviour that was asked for (rbve.behaviours.record.Asked); None = another
"""
