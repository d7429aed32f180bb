"""Ways to run bundles of jobs, one file each; its presence is its registration.

An executor file holds

    a docstring whose first line says where bundles run
    run      (bundles, out, on_progress, stores) -> list of lines. Runs every bundle into the folder
             `out` and returns a line for each that could not be trained while the others were
    workers  (devices) -> how many bundles run at a time, if each splits batches over `devices`

and, if its workers share the memory of this process,

    IN_PROCESS  True: it takes datasets that are held in memory, from `stores`
"""

from rbve.registry import Registry

DEFAULT = "threads"
EXECUTORS = Registry("executor", __name__, __file__)
