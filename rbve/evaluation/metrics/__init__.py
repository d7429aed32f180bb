"""Metrics of episodes that were played, one file each.

A file holds `METRIC`, a rbve.evaluation.metric.Metric, and one of

    per_episode(record)       values (E,) from a rbve.evaluation.metric.Record; None = not measured
    derived(figures, facts)   (value, n) from {metric: (value, n)} and facts of the data; or None

It imports no JAX: arrays have their operators and methods, and `record.mean`.
"""
