"""`rbve train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, UseAppendAction, arg

from rbve import algorithms
from rbve.cli import _console
from rbve.cli._arguments import ExecutorName, Json, find_modules_here, need_one
from rbve.parts import Torso
from rbve.sweep.executors import DEFAULT
from rbve.training.presets import PRESETS

RESUMES = True
ALGORITHMS = ", ".join(algorithms.names())
PRESET_HELP = (
    f"The paper's settings for a benchmark, where no other flag is given: {', '.join(PRESETS)}. "
    "Add --help to see them."
)


def command(
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
    polyak: float = 0.0,
    every: int = 0,
    batch_size: int = 0,
    torso: Torso = "auto",
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
    eval_epsilon: float = 0.4**8,
    final_evaluations: int = 5,
    keep: float = 1.0,
    keep_seed: int = 0,
    side: Literal["all", "above", "below"] = "all",
    action: Literal["chosen", "executed"] = "chosen",
    devices: int = 1,
    executor: ExecutorName = DEFAULT,
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
        polyak: Move the target at every update by this share of the way to the online network,
            instead of copying it every --target-period updates; 0 = copies.
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
        eval_epsilon: Share of random actions in evaluation (the paper's 0.4^8).
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
    from rbve.evaluation.offline_case import run_warnings
    from rbve.spec import Spec
    from rbve.sweep import grid
    from rbve.sweep.run import run_jobs
    from rbve.training.notes import notes, period_notes
    from rbve.training.presets import frames_to_join
    from rbve.training.run import is_finished

    del preset  # its fields are the defaults of the others by now (rbve/cli.py)
    need_one("DATA", data)
    need_one("--algorithm", algorithm)
    need_one("--seed", seed)
    need_one("--learning-rate", learning_rate)
    find_modules_here(env)
    where, missing = grid.evaluation_env(data, env)
    _console.show_notes(missing)
    base = Spec.of(
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
        eval_epsilon=eval_epsilon,
        final_evaluations=final_evaluations,
        keep=keep,
        keep_seed=keep_seed,
        side=side,
        action=action,
        target_period=target_period,
        polyak=polyak,
    )
    vary = grid.parse_settings(set) | {
        "algorithm": algorithm,
        "learning_rate": learning_rate,
        "path": [str(path) for path in data],
        "seed": seed,
    }
    opened = {str(path): api.load(path, verify=False) for path in data}
    marks = {str(path): fingerprint(path) for path in data}
    if not stack:
        frames_to_join([each.obs_shape for each in opened.values()])
    members = [
        job.varied(fingerprint=marks[job.data.path]).resolved(opened[job.data.path].obs_shape)
        for job in grid.jobs(base, vary)
    ]
    for path, each in opened.items():
        _console.show_notes(notes(path, each, members))
    left = [job for job in members if not is_finished(out / job.id)]
    what = f"training {counted(len(left), 'member')}"
    with _console.bar(what, steps * len(left), "updates") as bar:
        interval = members[0].evaluation.every
        folders = run_jobs(
            members,
            out,
            lambda progress: bar.advance(
                progress.step - (progress.step - 1) // interval * interval,
                progress.metrics.get("return"),
            ),
            devices=devices,
            executor=executor,
        )
    _console.show_notes(period_notes(members))
    runs = result_rows.find(folders)
    _console.show_runs(runs, as_json)
    _console.show_policies(folders)
    for run in runs:
        _console.show_notes(run_warnings(run.job, run))
    _console.fail_where_diverged(runs)
