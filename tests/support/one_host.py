"""One of several processes that train together: RANK COUNT PORT STORE OUT JOB_JSON."""

import json
import sys
from pathlib import Path

import jax

rank, count, port, store, out, text = sys.argv[1:]
jax.config.update("jax_num_cpu_devices", 1)
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", int(count), int(rank))

from rbve.data import load  # noqa: E402
from rbve.spec import Spec  # noqa: E402
from rbve.training.run import train_members  # noqa: E402

job = Spec.from_json(json.loads(text))
train_members([job], [load(store)], [Path(out) / rank], devices=int(count))
