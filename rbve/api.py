"""The Python interface: load, record, train, evaluate, report."""

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rbve import backend, rows
from rbve.audit import Audit, audit, audit_frame, audit_path
from rbve.behaviours import record as recorder
from rbve.behaviours.record import Asked, RecordingPlan, choose
from rbve.data import Dataset, Episode, frames, load
from rbve.data import convert as conversion
from rbve.evaluation import evaluate as evaluator
from rbve.evaluation.metric import run_warnings
from rbve.evaluation.rollout import EvaluationPlan
from rbve.loggers import Loggers
from rbve.policy import Policy
from rbve.report import write_report
from rbve.report.statistics import student_interval
from rbve.spec import Spec
from rbve.sweep.cluster import Cluster, on_cluster
from rbve.sweep.config import SweepConfig, read_config
from rbve.sweep.grid import evaluation_env, identified
from rbve.sweep.run import run_jobs
from rbve.training import presets
from rbve.training.notes import notes
from rbve.training.run import POLICY, Progress

__all__ = [
    "Dataset", "Episode", "Policy", "convert", "evaluate", "inspect", "load", "record", "train",
    "write_report",
]  # fmt: skip

IN_MEMORY = "in memory"  # stands for the path of a Dataset that was passed as an object


def record(
    env: Any,
    out: str | Path,
    episodes: int | None = None,
    policy: Policy | Callable[..., Any] | str | Path | None = "online",
    *,
    preset: str | None = None,
    algorithm: str | Path | None = None,
    on_progress: recorder.OnProgress = lambda progress: None,
    **plan: Any,
) -> Dataset:
    """Record a dataset and open it.

    Args:
        env: A name, or for a policy that does not learn an environment as rbve.evaluate takes it.
        out: Folder of the dataset.
        episodes: How many to play; None = the environment's default, or `steps` of an agent.
        policy: "online" (a DQN while it learns), "r2d2" (an agent with memory while it learns; it
            goes by steps alone), "uniform", "script" (a player written for the game), "clinicians"
            (those of icu_sepsis), a Policy or its file, or a function as rbve.evaluate takes it.
        preset: "rlu-atari" is the paper's online agent for Atari, "rlu-dmlab" that for DeepMind
            Lab, here in environments in JAX.
        algorithm: File of a saved policy's algorithm, as rbve.evaluate takes it.
        on_progress: Called whenever episodes were written.
        **plan: Fields of rbve.behaviours.record.RecordingPlan: `steps` of the environment for an
            agent that learns, `epsilon` (share of random actions of any other policy but
            "uniform"), `noise` (probability that the environment executes a random action),
            `seed`, `keep` (share of the episodes), `overwrite`, and `legal` as rbve.evaluate
            takes it.

    Returns:
        The dataset at `out`.

    Raises:
        ValueError: The policy is unknown or does not go with the plan, or `out` cannot be written.
        TypeError: The plan has no such field.

    Example:
        >>> rbve.record("catch", "data/catch", 20, "uniform")
        Dataset(20 episodes, 180 decisions, 3 actions, observations (10, 5) float32)
    """
    backend.prepare()
    known = RecordingPlan(env, Path(out), episodes, **plan)
    recorder.record(choose(Asked(policy, preset, algorithm), known), known, on_progress)
    return load(out)


def convert(
    src: Any,
    dst: str | Path,
    *,
    format: str | None = None,
    to: str | None = None,
    overwrite: bool = False,
    **options: Any,
) -> Dataset:
    """Convert data of any format and open the result.

    Args:
        src: File or folder to read, or a data frame (pandas, polars, anything with Arrow's stream
            interface) with one row per decision.
        dst: Where to write: a folder for the native store.
        format: Of `src`; None recognises it by its content.
        to: Format of `dst`; None chooses by its name, else the native store.
        overwrite: Replace what `dst` holds, in one step.
        options: Those of the format, as `rbve convert --help` lists them: of a CSV or Parquet log
            which column is what, such as episode="visit" or observation=["age", "ward"].

    Returns:
        The dataset at `dst`.

    Raises:
        ValueError: `src` cannot be read as that; the message names file, row and column.

    Example:
        >>> log = rbve.convert(
        ...     "examples/visits.csv", "data/log", episode="visit", time="day", action="treatment",
        ...     reward="outcome", ends="terminated",
        ... )
        >>> log
        Dataset(400 episodes, 2,021 decisions, 3 actions, observations (3,) float32)
        >>> log.actions
        ('mild', 'none', 'strong')
    """
    for note in conversion.convert(src, dst, format, to, options, overwrite):
        warnings.warn(note, stacklevel=2)
    return load(dst, to)


def inspect(
    data: Any,
    gamma: float = 0.99,
    beta: float = 0.5,
    *,
    format: str | None = None,
    **options: Any,
) -> Audit:
    """Audit a dataset before training on it.

    Args:
        data: A Dataset, a file or folder of any format, or a data frame with one row per decision.
        gamma: Discount of the returns that weigh the ranking term.
        beta: Temperature of those weights.
        format: Of `data`, if it is a path; None recognises it by its content.
        options: Those of the format, as rbve.convert takes them.

    Returns:
        Its `verdict` ("fine", "look" or "stop"), `findings` with remedies, and every figure.

    Raises:
        ValueError: `data` is no dataset, or gamma or beta is out of bounds.

    Example:
        >>> audit = rbve.inspect("data/visits")
        >>> audit.verdict, [finding.name for finding in audit.findings]
        ('fine', [])
    """
    if isinstance(data, Dataset):
        return audit(data, gamma, beta)
    if frames.is_frame(data):
        return audit_frame(data, options, gamma, beta)
    return audit_path(Path(data), format, options, gamma, beta)


def train(
    data: Any,
    algorithm: str = "rbve",
    *,
    out: str | Path | None = None,
    preset: str | None = None,
    config: str | Path | None = None,
    spec: Mapping[str, Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    cluster: str | Cluster | None = None,
    log: Sequence[str] = (),
    **keywords: Any,
) -> Policy:
    """Train one policy.

    Args:
        data: A dataset, the path of a store, or a data frame with one row per decision.
        algorithm: A name, or a path to a .py file.
        out: Folder for rows and checkpoints, where an interrupted run resumes; None keeps neither.
        preset: The paper's settings for a benchmark, such as "rlu-atari".
        config: TOML file of fields, as `rbve train --print-config` writes it.
        spec: Further fields, as a mapping.
        columns: Of a data frame: which column is what, as rbve.convert takes it, such as
            {"episode": "visit", "action": "treatment"}.
        on_progress: Called after every evaluation.
        cluster: A Ray cluster to train on: "local", "auto", "HOST:PORT" of its head, or a
            rbve.sweep.cluster.Cluster, which asks for accelerators too. It takes data by path.
        log: Where rows go besides `out`: "tensorboard", "wandb" (rbve/loggers).
        **keywords: Fields of rbve.spec.Spec by name (steps, env, seed, gamma, hidden, memory, ...:
            the flags of `rbve train`) and settings of the algorithm (lam=0.5, filter="none").
            None = the default. Keywords go first, then `spec`, the file and the preset.
            Without `env`, a fifth of the episodes is held out and judges; holdout=0 trains on all.

    Returns:
        The trained policy; `info` says how it was trained.

    Raises:
        ValueError: A name or value is none, or the data does not fit; the message says which.

    Example:
        >>> policy = rbve.train("data/visits", "bve", steps=20, hidden=(8,))
        >>> policy.algorithm.name, policy.actions
        ('bve', ('mild', 'none', 'strong'))
    """
    if frames.is_frame(data):
        source = frames.read(data, columns)
        data = Dataset.join(source.parts)
        for note in source.notes:
            warnings.warn(note, stacklevel=2)
    elif columns is not None:
        raise ValueError("columns= is of data frames; a store knows its columns")
    held = {IN_MEMORY: data} if isinstance(data, Dataset) else {}
    path = IN_MEMORY if isinstance(data, Dataset) else str(data)
    if out is not None and held:
        raise ValueError(
            "out= needs data given by path, so that a resumed run finds it; write the dataset with "
            "rbve.data.write first"
        )
    if log and out is None:
        raise ValueError("log= needs out=, the folder that keeps what it tells")
    opened = data if isinstance(data, Dataset) else load(data, verify=False)
    asked = SweepConfig(Spec.of(**presets.load(preset)), {})
    if config is not None:
        asked = read_config(Path(config), asked)
    fields = {"path": path, "algorithm": algorithm, **(spec or {})}
    fields |= {name: value for name, value in keywords.items() if value is not None}
    asked = asked.with_fields(fields, {})
    if several := list(asked.vary):
        raise ValueError(f"{config}: several values of {several[0]}; rbve.train trains one policy")
    where, missing = evaluation_env([Path(path)], asked.base.evaluation.env or "none")
    job = identified(asked.base.varied(env=where), opened)
    for note in [*missing, *notes(path, opened, [job])]:
        warnings.warn(note, stacklevel=2)
    with tempfile.TemporaryDirectory() as scratch, Loggers(log, Path(out or scratch)) as logged:

        def told(progress: Progress) -> None:
            logged(progress)
            on_progress(progress)

        place = Path(out or scratch)
        folder = run_jobs([job], place, told, held, cluster=on_cluster(cluster))[0]
        for run in rows.find([folder]):
            for words in run_warnings(algorithm, run):
                warnings.warn(words, stacklevel=2)
        return Policy.load(folder / POLICY, algorithm)


def evaluate(
    policy: Policy | Callable[..., Any] | str | Path,
    env: Any,
    episodes: int = 100,
    epsilon: float = 0.4**8,
    gamma: float | None = None,
    noise: float = 0.0,
    seed: int = 0,
    algorithm: str | Path | None = None,
    legal: str | None = None,
) -> dict[str, Any]:
    """Mean return, episode length and the value diagnostics of a policy in an environment.

    Args:
        policy: A Policy, its file, or a function that gives an action id or name for an observation
            and, if it has a second parameter `legal`, the mask of legal actions (None = all).
        env: A name, a Gymnasium environment, or one of rbve.envs.load.
        episodes: How many are played.
        epsilon: Share of random actions.
        gamma: Discount; None = the one the policy was trained with.
        noise: Probability that the environment executes a random action.
        seed: Of the episodes.
        algorithm: File of a saved policy's algorithm, as Policy.load takes it.
        legal: "all" says that all actions are, if the policy's data had masks and the environment
            has none.

    Returns:
        Figures by name. "return_interval" is the 95% Student interval [low, high] of the mean
        return over the episodes, None where there is one only: what other episodes of this policy
        would give, not another policy. Where the return is normalised by another agent's score than
        that of the data's own, "normalised_by" says whose; "legal_actions" tells where those came
        from.

    Example:
        >>> found = rbve.evaluate(lambda observation: "stay", "catch", episodes=10)
        >>> found["episodes"], -1 <= found["return"] <= 1
        (10, True)
    """
    backend.prepare()
    plan = EvaluationPlan(episodes, epsilon, gamma, noise=noise, legal=legal)
    if not isinstance(policy, Policy) and not callable(policy):
        policy = Policy.load(policy, algorithm)
    evaluation = evaluator.evaluate(policy, env, plan, seed)
    known = evaluator.known_references(policy, env)
    means = {name: value for name, (value, _) in evaluation.figures(known).items()}
    spread = student_interval(np.asarray(evaluation.per_episode["return"], np.float64))
    shown: dict[str, Any] = {"return": means["return"], "return_interval": spread and list(spread)}
    shown |= {"episodes": episodes, **means}
    if evaluation.legal_actions is not None:
        shown["legal_actions"] = evaluation.legal_actions
    if "normalised_return" in means and "reference_source" in known:
        shown["normalised_by"] = known["reference_source"]
    return shown
