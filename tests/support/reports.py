"""Rows of runs as reports read them."""

import base64
import gzip
import json
from typing import Any

from rbve.rows import Row, RowFile

FACTS = {
    "episodes": 200,
    "transitions": 1800,
    "actions": 3,
    "best_return": 1.0,
    "random_return": -0.6,
    "reference_return": 1.0,
    "recording": {"env": "catch", "behaviour": "online dqn", "noise": 0.0, "keep": 1.0},
}


def add_run(folder, algorithm, dataset=0, *, env="catch", data=None, facts=None, **job):
    number = len(list(folder.glob("*")))
    spec = {
        "data": {"path": f"data/catch-seed{dataset}", "keep": 0.1, "keep_seed": 0}
        | {"side": "all", "action": "chosen"}
        | (data or {}),
        "algorithm": algorithm,
        "settings": job.get("config", {}),
        "steps": 300,
        "seed": dataset,
        "view": {"gamma": 0.99},
        "optimiser": {"learning_rate": job.get("learning_rate", 3e-4), "target_period": 1},
        "evaluation": {"env": env},
    }
    known = {**FACTS, "env": env, "behaviour_return": 0.6 + 0.1 * dataset} | (facts or {})
    place = folder / f"run{number}"
    place.mkdir(parents=True)
    file = RowFile(place, job.get("id", f"job-{number}"), spec, known)
    file.keep(0)
    return file


def finals(values, step=300):
    return [Row(step, f"final/{name}", value, 500) for name, value in values.items()]


def embedded_table(page: str, name: str) -> dict[str, Any]:
    """Content of a long table of a page."""
    found = page[page.index(f'id="{name}"') :]
    start = found.index('<script type="application/gzip">') + 32
    return json.loads(gzip.decompress(base64.b64decode(found[start : found.index("</script>")])))
