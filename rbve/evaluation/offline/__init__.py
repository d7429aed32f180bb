"""Evaluations that need no environment, one file each.

A file holds `METRIC`, a rbve.evaluation.metric.Metric, and

    evaluate(case)          (value, n) of a trained policy, from a metric.OfflineCase
    facts(dataset, view)    optional: what rows say of the data beside it
    warnings(name, run)     optional: what to tell the user of a finished run

Training runs them at the end of a run and writes `final/NAME`.
"""
