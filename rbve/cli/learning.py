"""Commands that learn: train, evaluate, demo, reproduce."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, UseAppendAction, arg

from rbve import algorithms
from rbve.cli import console
from rbve.cli.arguments import AlgorithmFile, EnvName, Json, Legal, find_modules_here, need_one
from rbve.paper import experiments
from rbve.training.presets import PRESETS

ALGORITHMS = ", ".join(algorithms.names())
PRESET_HELP = (
    f"The paper's settings for a benchmark, where no other flag is given: {', '.join(PRESETS)}. "
    "Add --help to see them."
)
EXPERIMENTS = "; ".join(f"{name}: {experiments.summary(name)}" for name in experiments.names())


def demo(out: Path = Path("demo")) -> None:
    """Record data, train R-BVE and baselines, evaluate, write a report. Needs no input.

    Run again after an interruption: finished work is kept.

    Args:
        out: Folder for datasets, runs and the report.
    """
    from rbve.cli import demo as steps
    from rbve.files import locked

    with locked(out):
        steps.run(out)


def train(
    data: Positional[Annotated[tuple[Path, ...], arg(metavar="DATA")]],
    /,
    out: Path = Path("runs"),
    algorithm: Annotated[
        tuple[str, ...], arg(help=f"One or more of {ALGORITHMS}, or a path to a .py file.")
    ] = ("rbve",),
    set: UseAppendAction[tuple[str, ...]] = (),
    steps: int = 100_000,
    env: str = "auto",
    seed: tuple[int, ...] = (0,),
    learning_rate: tuple[float, ...] = (3e-4,),
    target_period: int = 0,
    every: int = 0,
    batch_size: int = 0,
    torso: Literal["auto", "mlp", "atari", "atari_valid", "board"] = "auto",
    hidden: tuple[int, ...] = (),
    stack: int = 1,
    memory: int = 0,
    sequence: int = 0,
    burn_in: int = 0,
    rescale: bool | None = None,
    rows: Literal["auto", "memory", "disk"] = "auto",
    td: Literal["square", "huber"] = "square",
    gamma: float = 0.99,
    n_step: int = 0,
    clip_rewards: bool = False,
    eval_episodes: int = 100,
    final_evaluations: int = 5,
    keep: float = 1.0,
    keep_seed: int = 0,
    side: Literal["all", "above", "below"] = "all",
    action: Literal["chosen", "executed"] = "chosen",
    devices: int = 1,
    preset: Annotated[str | None, arg(metavar="NAME", help=PRESET_HELP)] = None,
    as_json: Json = False,
) -> None:
    """Train on one or more datasets: every combination of data, algorithm, setting and seed.

    Members run on all cores. Ctrl-C and SIGTERM end it within seconds (a second one at once). Run
    the same command again and it goes on where it stopped, to the same result; finished members are
    kept. Where a checkpoint is damaged, the one before it serves.

    Exit codes: 0 done, 2 bad input or a damaged run (the others are trained), 5 a member diverged
    (its policy holds the last finite weights, and says so), 130 Ctrl-C, 143 SIGTERM.

    Args:
        data: One or more stores, as `rbve record` and `rbve convert` write them.
        out: Folder for rows, checkpoints and policies, one sub-folder per member.
        set: A setting of the algorithm, NAME=VALUE or NAME=VALUE,VALUE to try several; repeatable
            (rbve: lam, nu, beta, cap, filter, normalise, form, bounded; cql: alpha; ...).
        steps: Updates.
        env: Where to evaluate; "auto" = where the data says it was recorded, "none" = nowhere.
            `rbve evaluate --help` lists environments, yours among them (gymnasium:MODULE:ID).
        seed: One or more seeds of weights and batches.
        learning_rate: One or more Adam step sizes.
        target_period: Updates between target syncs; 0 = steps / 800, but 100 at least (steps / 20
            under 2,000 steps): under a target that moves every few updates values run away.
        every: Updates between evaluations and checkpoints; 0 = steps / 20.
        batch_size: Transitions per update, with memory sequences; 0 = 128, or 8 with memory.
        torso: What turns an observation into features: dense layers, the convolutions of the paper
            (atari; atari_valid pads nothing) or MinAtar's (board); auto = by the shape.
        hidden: Units per dense layer. Default: 56 56 for mlp, 512 for atari (with memory none), 128
            for board.
        stack: Frames joined into one observation; 0 = 4, unless the data holds them joined.
        memory: Units of an LSTM, for decisions that need to remember (R2D2: 512); it also sees the
            last action and the last reward. 0 = none.
        sequence: With memory: steps trained on at a time; 0 = whole episodes.
        burn_in: With --sequence: steps before them that only warm the memory.
        rescale: Learn values on R2D2's square-root scale. Default: with memory.
        rows: Where rows wait to be drawn; auto = in memory up to 1 GiB (without memory
            16 MiB of pixels), else on disk.
        td: Form of the TD loss. With huber, values run away on cartpole at short target periods
            where those of the square do not: keep the square there.
        gamma: Discount per step.
        n_step: Window of summed rewards; 0 = 1, or 5 with memory.
        clip_rewards: Clip rewards to [-1, 1].
        eval_episodes: Episodes per evaluation.
        final_evaluations: Last evaluations whose mean is the final figure; none
            from the first half of the updates.
        keep: Share of the episodes to train on.
        keep_seed: Seed of that choice.
        side: Only episodes above, or not above, the mean return.
        action: Train on the action the agent chose or the one the environment executed.
        devices: Over how many accelerators (or cores) every batch is split, without memory.
            Results change in the last digits alone.
    """
    from rbve import api
    from rbve import rows as result_rows
    from rbve.audit.verdict import counted
    from rbve.data.manifest import fingerprint
    from rbve.sweep import grid
    from rbve.training import outside
    from rbve.training.notes import notes, period_notes
    from rbve.training.presets import frames_to_join
    from rbve.training.run import is_finished
    from rbve.training.spec import DataRef, Spec, resolve

    del preset  # its fields are the defaults of the others by now (rbve/cli.py)
    need_one("DATA", data)
    need_one("--algorithm", algorithm)
    need_one("--seed", seed)
    need_one("--learning-rate", learning_rate)
    refs = [DataRef(str(path), keep, keep_seed, side, action, fingerprint(path)) for path in data]
    find_modules_here(env)
    where, missing = grid.evaluation_env(data, env)
    console.show_notes(missing)
    opened = [api.load(path, verify=False) for path in data]
    stack = stack or frames_to_join([each.obs_shape for each in opened])
    specs = []
    for name, settings in grid.combinations(algorithm, set):
        plan = Spec(
            algorithm=name,
            torso=torso,
            hidden=hidden,
            stack=stack,
            memory=memory,
            sequence=sequence,
            burn_in=burn_in,
            rescale=rescale,
            rows=rows,
            batch_size=batch_size,
            td=td,
            gamma=gamma,
            n_step=n_step,
            clip_rewards=clip_rewards,
            steps=steps,
            every=every,
            env=where,
            eval_episodes=eval_episodes,
            final_evaluations=final_evaluations,
        )
        specs.append(resolve(plan, settings))
    plans = [(spec.algorithm, spec.options) for spec, _ in specs]
    for path, each in zip(data, opened, strict=True):
        console.show_notes(notes(str(path), each, plans))
    members = grid.jobs(refs, specs, seed, learning_rate, target_period)
    left = [job for job in members if not is_finished(out / job.id)]
    what = f"training {counted(len(left), 'member')}"
    with console.bar(what, steps * len(left), "updates") as bar:
        interval = specs[0][0].every
        folders = api.local.run(
            members,
            out,
            lambda progress: bar.advance(
                progress.step - (progress.step - 1) // interval * interval,
                progress.metrics.get("return"),
            ),
            devices=devices,
        )
    console.show_notes(period_notes(members))
    runs = result_rows.find(folders)
    console.show_runs(runs, as_json)
    console.show_policies(folders)
    for run in runs:
        console.show_notes(outside.words(run.job, run))
    console.fail_where_diverged(runs)


def evaluate(
    policy: Positional[Annotated[Path, arg(metavar="POLICY")]],
    /,
    env: EnvName,
    episodes: int = 100,
    epsilon: float = 0.4**8,
    gamma: float | None = None,
    noise: float = 0.0,
    seed: int = 0,
    algorithm: AlgorithmFile = None,
    legal: Legal = None,
    as_json: Json = False,
) -> None:
    """Evaluate a saved policy in an environment: its mean return, with a 95% interval, and more.

    Args:
        policy: File of a saved policy, as `rbve train` names them at its end, or its run's folder.
        episodes: Episodes to play.
        epsilon: Share of random actions (the paper's 0.4^8).
        gamma: Discount for the value figures. Default: the one it was trained with.
        noise: Probability that the environment executes a random action instead.
        seed: Seed of the episodes.
    """
    from rbve import api
    from rbve.policy.file import policy_file

    find_modules_here(env)
    policy = policy_file(policy)
    figures = api.evaluate(policy, env, episodes, epsilon, gamma, noise, seed, algorithm, legal)
    if as_json:  # which has no NaN
        figures = {name: None if value != value else value for name, value in figures.items()}
    console.show_figures(f"{policy} in {env}", figures, as_json)


def reproduce(
    name: Positional[
        Annotated[
            tuple[str, ...], arg(metavar="NAME", help=f"One or more of {EXPERIMENTS}; or all.")
        ]
    ],
    /,
    scale: Literal["quick", "desk", "paper"] = "quick",
    out: Path = Path("study"),
    noise: tuple[float, ...] = (),
) -> None:
    """Run figures or tables of the paper: record the data, train, evaluate; then `rbve report OUT`.

    Run the same command again after an interruption: recordings, runs and rows go on where they
    stopped. Experiments in one folder share recordings and equal runs.

    Args:
        scale: quick = minutes, desk = hours on a few cores, paper = the paper's numbers
            (with memory its number of updates, on levels and networks as small as at desk).
        out: Folder for recordings, runs and rows.
        noise: Levels of noise in place of the experiment's own, e.g. 0 0.1 0.2 0.3 0.4 0.5.
    """
    from rbve import api
    from rbve.files import locked

    need_one("NAME", name)
    del api  # sets JAX up
    named = experiments.names() if "all" in name else name
    loaded = {each: experiments.load(each) for each in named}
    trained = {
        k: each.with_noise(noise) if noise else each
        for k, each in loaded.items()
        if isinstance(each, experiments.Experiment)
    }
    if noise and not trained:
        raise ValueError(f"--noise is for experiments with data; {', '.join(named)} needs none")
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out}: is a file; give a folder with --out")
    with locked(out):
        for each, experiment in loaded.items():
            if isinstance(experiment, experiments.Theory):
                run_theory(each, experiment, scale, out / "theory" / each)
        if trained:
            run_study(trained, scale, out)
    console.tell(f"done: `rbve report {out} --out {out.name}.html` shows it")


def run_theory(name: str, experiment: experiments.Theory, scale: str, out: Path) -> None:
    """Rows first, then the figures drawn from them."""
    from rbve import rows
    from rbve.files import write_atomically
    from rbve.paper.pages import theory_figures

    with console.bar(name, None, ""):
        found = importlib.import_module(f"rbve.paper.theory.{experiment.module}").run(scale)
        for run in found:
            rows.write(run, out / "rows" / f"{run.job}.jsonl")
        for drawing in theory_figures.draw(experiment.module, found):
            file = out / f"{drawing.kind}.png"
            write_atomically(file, drawing.png)
            console.tell(f"figure: {file}")


def run_study(chosen: dict[str, experiments.Experiment], scale: str, out: Path) -> None:
    from rbve.audit.verdict import counted
    from rbve.data.manifest import is_recorded
    from rbve.paper import reproduce as study
    from rbve.paper.audits import write_audits
    from rbve.paper.frames import write_strips
    from rbve.training.run import is_finished

    size = study.scale_named(scale)
    wanted = study.recordings(list(chosen.values()), size)
    missing = [each for each in wanted if not is_recorded(each.folder(out))]
    with console.bar(f"recording {counted(len(missing), 'dataset')}", len(missing), "") as bar:
        study.record_all(
            wanted,
            out,
            lambda each, fresh, last: bar.advance(fresh, last),
            study.needless(list(chosen.values()), size, out),
        )
    with console.bar("auditing the data", len(wanted), "datasets") as bar:
        write_audits(out, lambda recording: bar.advance(1, None))
    write_strips(out)
    jobs = {job.id: job for each in chosen.values() for job in study.jobs(each, size, out)}
    for name, experiment in chosen.items():
        for env, reason in study.left_out(experiment, size, out).items():
            console.tell(f"{name}: {env} is left out: {reason}")
    if not jobs:
        raise ValueError(f"no data counts, so there is nothing to train; recordings are in {out}")
    left = [job for job in jobs.values() if not is_finished(out / "runs" / job.id)]
    updates = sum(job.spec.steps for job in left)
    with console.bar(f"training {len(left)} of {len(jobs)} runs", updates, "updates") as bar:
        study.run(
            chosen, size, out, lambda p: bar.advance(p.job.spec.every, p.metrics.get("return"))
        )
