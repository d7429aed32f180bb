"""Ways to run bundles of jobs, one file each; its presence is its registration.

An executor file holds

    a docstring whose first line says where bundles run
    run      (bundles, out, on_progress, stores) -> list of lines. Runs every bundle into the folder
             `out` and returns a line for each that could not be trained while the others were
    workers  (devices) -> into how many parts the jobs of a program are cut, so many bundles run at
             a time, if each splits batches over `devices`

and, if its workers share the memory of this process,

    IN_PROCESS  True: it takes datasets that are held in memory, from `stores`

and, if it works on a cluster,

    run_on   as run, with a Cluster (rbve/sweep/cluster.py) as a fifth argument
"""

from rbve.registry import Registry

DEFAULT = "threads"
CLUSTER = "ray"  # where a cluster is named and no executor
EXECUTORS = Registry("executor", __name__, __file__)
