"""Behaviours, one file each; a file's presence is its registration.

A file holds

    ORDER          its place among those that are asked
    LEARNS         whether the agent learns while it acts: it may go by steps, and has its own ε
    PRESETS        names of its settings for a benchmark, if there are any
    claim(asked)   the Behaviour that was asked for (rbve.behaviours.record), such as a FixedPolicy
                   (rbve.behaviours.rollouts) or a class of its own; None = another
"""
