"""Evaluations that need no environment, one file each.

A file holds `METRIC`, a rbve.evaluation.metric.Metric, and

    evaluate(case)          (value, n) of a trained policy, from a metric.OfflineCase
    facts(dataset, view)    optional: what rows say of the data beside it
    warnings(name, run)     optional: what to tell the user of a finished run

Training runs them on its own data at the end of a run and writes `final/NAME`. A file that says
`HELD_OUT = True` is of the episodes that were held out: its case is a metric.HeldOut, and training
writes `NAME` at every interval and `final/NAME`, that of the finished policy.
"""
