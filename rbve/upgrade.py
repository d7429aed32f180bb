"""Rows and policies of earlier versions: their job in the layout of today's Spec."""

from __future__ import annotations

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
