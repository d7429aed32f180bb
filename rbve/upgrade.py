"""Rows and policies of earlier versions: their job in the layout of today's Spec, and its names."""

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

PARTS = {
    "network": ("torso", "hidden", "stack", "memory", "rescale"),
    "view": ("gamma", "n_step", "clip_rewards"),
    "optimiser": ("learning_rate", "target_period"),
    "sampling": ("batch_size", "sequence", "burn_in", "rows"),
    "evaluation": ("env", "eval_episodes", "eval_epsilon", "every", "final_evaluations"),
}


def upgraded(job: Any) -> Any:
    """Of a flat layout ("spec", "config", learning rate and target period beside them)."""
    if not isinstance(job, dict) or not isinstance(job.get("spec"), dict):
        return job
    own = {name: value for name, value in job.items() if name not in ("spec", "config")}
    own |= {name: value for name, value in job["spec"].items() if name != "options"}
    numbers, choices = job.get("config", {}), job["spec"].get("options", {})
    if not isinstance(numbers, dict) or not isinstance(choices, dict):
        raise ValueError("the settings of the job are no objects")
    own["settings"] = {**numbers, **choices}
    for part, names in PARTS.items():
        if held := {name: own.pop(name) for name in names if name in own}:
            own[part] = held
    return own


def replicate_of(job: Mapping[str, Any]) -> str:
    """Of a job that names none: the data's content or place."""
    data = job.get("data", {})
    return str(data.get("fingerprint") or data.get("path", ""))


def group_of(job: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """Of a job that names none: how its data was made but for the seed, and what was kept."""
    own = ("path", "keep_seed", "fingerprint")  # differ between replicates
    kept = {name: value for name, value in job.get("data", {}).items() if name not in own}
    made = recording_of(job, facts)
    origin = {"dataset": replicate_of(job)} if made is None else {"recording": made}
    return json.dumps({**kept, **origin}, sort_keys=True)


def recording_of(job: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """How the data was recorded, but for the seed; None where nobody knows.

    Of a study's rows from before facts told recordings: by OUT/data/<env>-<noise>.../<seed>, and
    only where that is the name `rbve reproduce` gives to a recording with the run's facts and seed.
    """
    if isinstance(facts.get("recording"), dict):
        return facts["recording"]
    data, source = job.get("data", {}), facts.get("source") or {}
    env, noise, epsilon = facts.get("env"), source.get("noise"), source.get("epsilon")
    seed, player = data.get("keep_seed"), source.get("behaviour")
    if not isinstance(env, str) or not isinstance(noise, float) or not isinstance(seed, int):
        return None
    name = f"{env.replace(':', '-')}-{noise:g}"
    if player in ("policy", "script") and epsilon is not None:
        name += f"-{'expert' if player == 'policy' else 'script'}-{epsilon:g}"
    path = PurePath(str(data.get("path", "")))
    if path.parts[-3:] not in [("data", each, str(seed)) for each in (name, f"{name}-r2d2")]:
        return None
    return {**source, "env": env, "folder": str(path.parent)}
