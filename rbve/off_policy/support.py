"""A policy with a model of the log's behaviour, so that it says which decisions lack support.

The model is cloning by the trainer of all algorithms, calibrated on episodes that it did not see.
"""

import dataclasses
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.manifest import content_fingerprint
from rbve.off_policy.behaviour import best_temperature
from rbve.parts import HOLDOUT
from rbve.policy import Policy
from rbve.policy.outputs import check_fit, outputs_on
from rbve.policy.support import Support
from rbve.runtime.inputs import action_id
from rbve.runtime.outcome import BEHAVIOUR
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.training.run import POLICY, Progress

_MODEL = "behaviour"  # stands for the path of the data


@dataclass(frozen=True)
class SupportPlan:
    """How the behaviour is modelled, and what counts as supported.

    Attributes:
        threshold: Least probability, in the log, of an action that counts as supported.
        fallback: What is done without support: an action's name, "behaviour" for what the log does
            most often in such a state, None for the policy's action all the same.
        steps: Updates of the model.
        seed: Of its weights, its batches and the episodes that calibrate it.
    """

    threshold: float = 0.05
    fallback: str | None = None
    steps: int = 20_000
    seed: int = 0


def with_support(
    policy: Policy,
    data: Dataset,
    plan: SupportPlan,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Policy:
    """The policy with a Support of this log.

    Raises:
        ValueError: The log is not of the policy's decisions, or the fallback is no action.
    """
    check_fit(policy, data)
    if not 0 <= plan.threshold <= 1:
        raise ValueError(f"threshold is a share from 0 to 1; got {plan.threshold:g}")
    if policy.features is not None and policy.features != data.features:
        raise ValueError(
            "the policy's columns are scaled otherwise than those of this log; give the store it "
            "was trained on, or train it on this one"
        )
    fallback: int | str | None = plan.fallback
    if plan.fallback is not None and (plan.fallback in policy.actions or fallback != BEHAVIOUR):
        fallback = action_id(plan.fallback, policy.actions)
    job = Spec.of(
        path=_MODEL, fingerprint=content_fingerprint(data), algorithm="bc", steps=plan.steps,
        every=plan.steps, hidden=policy.hidden, memory=policy.memory, torso=policy.torso,
        stack=policy.trained.stack, seed=plan.seed, holdout=HOLDOUT, holdout_seed=plan.seed,
        n_step=1,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        folder = run_jobs([job], Path(scratch), on_progress, {_MODEL: data})[0]
        model = Policy.load(folder / POLICY)
    judged = job.resolved(data.obs_shape).data.held_out(data) or data
    decided = judged.action >= 0
    decided[judged.offsets[1:] - 1] = False
    rows = np.flatnonzero(decided)
    logits = outputs_on(model, judged, rows).scores.astype(np.float64)
    temperature = best_temperature(judged.action[rows], logits)
    support = Support(model, temperature, plan.threshold, fallback)
    return dataclasses.replace(policy, support=support)
