"""Which runs share a dataset, and which datasets are replicates of one problem.

A job names both, its group and its replicate. Of rows of earlier versions they come from facts:
recordings made alike but for the seed are replicates, any other dataset is a problem of its own.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import Any

from rbve.rows import Run
from rbve.sweep.recordings import Recording


def dataset_of(run: Run) -> str:
    """The replicate that the job names; of earlier versions, the data's content or place."""
    if replicate := run.field("replicate"):
        return str(replicate)
    data = run.spec.get("data", {})
    return str(data.get("fingerprint") or data.get("path", ""))


def problem_of(run: Run) -> str:
    """The group that the job names; of earlier versions, how data was made and what was kept."""
    if group := run.field("group"):
        return str(group)
    data = run.spec.get("data", {})
    own = ("path", "keep_seed", "fingerprint")  # differ between replicates
    kept = {name: value for name, value in data.items() if name not in own}
    recording = recording_of(run)
    origin = {"dataset": dataset_of(run)} if recording is None else {"recording": recording}
    return json.dumps({**kept, **origin}, sort_keys=True)


def recording_of(run: Run) -> dict[str, Any] | None:
    """How the data was recorded, but for the seed; None where nobody knows."""
    recording = run.facts.get("recording")
    return recording if isinstance(recording, dict) else _recording_of_earlier_study(run)


def _recording_of_earlier_study(run: Run) -> dict[str, Any] | None:
    """Of a study's rows from before facts told recordings: by the study's own folder of the run.

    OUT/data/<env>-<noise>.../<seed>, and only where the name is exactly the one `rbve reproduce`
    gives to a recording with the facts and the seed of this run.
    """
    data, source = run.spec.get("data", {}), run.facts.get("source") or {}
    env, noise, epsilon = run.facts.get("env"), source.get("noise"), source.get("epsilon")
    seed, behaviour = data.get("keep_seed"), source.get("behaviour")
    if not isinstance(env, str) or not isinstance(noise, float) or not isinstance(seed, int):
        return None
    path = PurePath(str(data.get("path", "")))
    for memory in (False, True):
        made = Recording(
            env,
            noise,
            epsilon if behaviour == "policy" else None,
            seed,
            episodes=0,
            script=epsilon if behaviour == "script" else None,
            memory=memory,
        )
        if path.parts[-3:] == made.folder(Path()).parts:
            return {**source, "env": env, "folder": str(path.parent)}
    return None
