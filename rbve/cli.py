"""The command line: parse, call, print. JAX is imported only once there is work to do."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import OmitArgPrefixes, Positional, UseAppendAction, arg

from rbve import algorithms, console, envs
from rbve.data import formats
from rbve.data.logs.options import Options as LogColumns

ENVS = ", ".join([*envs.names(), "gymnasium:ID", "bsuite:ID"])
ALGORITHMS = ", ".join(algorithms.names())
FORMATS = "; ".join(f"{name}: {formats.summary(name)}" for name in formats.names())

EnvName = Annotated[str, arg(help=f"Environment: {ENVS}.", metavar="ENV")]
FormatName = Annotated[
    str | None, arg(help=f"Format of the data, if it cannot be told. {FORMATS}.", metavar="FORMAT")
]
Columns = OmitArgPrefixes[LogColumns]
Json = Annotated[bool, arg(name="json", help="Print figures as JSON.")]


def demo(out: Path = Path("demo")) -> None:
    """Record data, train R-BVE and baselines, evaluate, write a report. Needs no input.

    Run again after an interruption: finished work is kept.

    Args:
        out: Folder for datasets, runs and the report.
    """
    from rbve import demo as steps

    steps.run(out)


def record(
    env: Positional[EnvName],
    /,
    out: Path,
    episodes: int | None = None,
    policy: str = "online",
    epsilon: float = 0.0,
    noise: float = 0.0,
    seed: tuple[int, ...] = (0,),
    keep: float = 1.0,
    overwrite: bool = False,
    as_json: Json = False,
) -> None:
    """Record a dataset from an environment.

    Args:
        out: Folder of the dataset; with several seeds, of one dataset each (OUT/SEED).
        episodes: Episodes to play. Default: the paper's number for the environment, else 1000.
        policy: "online" (a DQN while it learns), "uniform", or a saved policy's file.
        epsilon: Share of random actions of a saved policy (0.25 = noisy expert).
        noise: Probability that the environment executes a random action instead.
        seed: One or more seeds; each gives its own dataset.
        keep: Share of the episodes to keep, drawn at random (the paper keeps 0.1).
        overwrite: Replace an existing dataset.
    """
    from rbve import api
    from rbve import inspect as inspection
    from rbve.recording.record import default_episodes

    need_one("--seed", seed)
    count = episodes if episodes is not None else default_episodes(env)
    folders = [out] if len(seed) == 1 else [out / str(one) for one in seed]
    with console.bar(f"recording {env}", count * len(seed), "episodes") as bar:
        done = dict.fromkeys(seed, 0)

        def one(item: tuple[int, Path]) -> None:
            def note(progress: Any) -> None:
                bar.advance(progress.episodes - done[item[0]], progress.last_return)
                done[item[0]] = progress.episodes

            api.record(env, item[1], count, policy, epsilon, noise, item[0], keep, overwrite, note)

        api.local.on_all_devices(one, list(zip(seed, folders, strict=True)))
    for folder in folders:
        console.show_dataset(folder, inspection.describe(api.load(folder)), as_json)


def convert(
    src: Positional[Annotated[Path, arg(metavar="SRC")]],
    dst: Positional[Annotated[Path, arg(metavar="DST")]],
    /,
    log: Columns = LogColumns(),  # noqa: B008
    columns: Path | None = None,
    format: FormatName = None,
    to: str | None = None,
    overwrite: bool = False,
) -> None:
    """Bring data in, or out: from any format to the native store, npz, Parquet, CSV or Minari.

    SRC is a file, a folder, or for RL Unplugged a glob of shards in quotes. DST is written as its
    suffix says (.npz, .parquet, .csv), else as a native store, which is what `rbve train` takes.
    Nothing appears at DST until all of it is there.

    For CSV and Parquet logs, one row per decision, say which column is what:

        rbve convert visits.csv visits --episode visit --action treatment --reward outcome

    Args:
        columns: TOML file with the same choices, `episode = "visit"` and so on; flags go first.
        to: Format to write, if the suffix of DST does not say: minari, minari_arrow, ...
        overwrite: Replace what is at DST.
    """
    from rbve.data.convert import convert as run

    options = console.log_options(log, columns)
    with console.bar(f"reading {src}", None, "") as bar:
        notes = run(src, dst, format, to, options, overwrite, bar.reach)
    console.show_notes(notes)
    console.show_written(dst)


def inspect(
    data: Positional[Annotated[Path, arg(metavar="DATA")]],
    /,
    log: Columns = LogColumns(),  # noqa: B008
    columns: Path | None = None,
    format: FormatName = None,
    html: Path | None = None,
    gamma: float = 0.99,
    beta: float = 0.5,
    as_json: Json = False,
) -> None:
    """Audit a dataset of any format: what it holds, what is wrong with it, whether to train on it.

    Ends in a verdict, which is also the exit code: 0 fine, 3 look at this, 4 do not train.

    Args:
        columns: TOML file that says which column of a CSV or Parquet log is what.
        html: Also write a page with figures.
        gamma: Discount of the values shown.
        beta: Temperature of the ranking weight.
    """
    from rbve.audit.files import audit_path

    found = audit_path(data, format, console.log_options(log, columns), gamma, beta)
    console.show_audit(data, found, as_json)
    if html is not None:
        from rbve.report.audit_page import write

        print(f"page: {write(found, html, str(data))}", file=sys.stderr)
    sys.exit(found.exit_code)


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
    batch_size: int = 128,
    hidden: tuple[int, ...] = (56, 56),
    stack: int = 1,
    rows: Literal["auto", "memory", "disk"] = "auto",
    td: Literal["square", "huber"] = "square",
    gamma: float = 0.99,
    n_step: int = 1,
    clip_rewards: bool = False,
    eval_episodes: int = 100,
    keep: float = 1.0,
    keep_seed: int = 0,
    side: Literal["all", "above", "below"] = "all",
    action: Literal["chosen", "executed"] = "chosen",
    as_json: Json = False,
) -> None:
    """Train on one or more datasets: every combination of data, algorithm, setting and seed.

    Members run on all cores. Run the same command again after an interruption: it resumes from
    the last checkpoint, and finished members are kept.

    Args:
        out: Folder for rows, checkpoints and policies, one sub-folder per member.
        set: A setting of the algorithm, NAME=VALUE or NAME=VALUE,VALUE to try several; repeatable
            (rbve: lam, nu, beta, cap, filter, normalise, form, bounded; cql: alpha; ...).
        steps: Updates.
        env: Where to evaluate; "auto" = where the data was recorded, "none" = nowhere.
        seed: One or more seeds of weights and batches.
        learning_rate: One or more Adam step sizes.
        target_period: Updates between target syncs; 0 = steps / 800.
        every: Updates between evaluations and checkpoints; 0 = steps / 20.
        batch_size: Transitions per update.
        hidden: Units per hidden layer.
        stack: Frames joined into one observation (Atari: 4).
        rows: Where rows wait to be drawn; auto = in memory up to 1 GiB, else on disk.
        td: Form of the TD loss.
        gamma: Discount per step.
        n_step: Window of summed rewards.
        clip_rewards: Clip rewards to [-1, 1].
        eval_episodes: Episodes per evaluation.
        keep: Share of the episodes to train on.
        keep_seed: Seed of that choice.
        side: Only episodes above, or not above, the mean return.
        action: Train on the action the agent chose or the one the environment executed.
    """
    from rbve import api
    from rbve import rows as result_rows
    from rbve.data.manifest import fingerprint
    from rbve.sweep import grid
    from rbve.training.run import is_finished
    from rbve.training.spec import DataRef, Spec, resolve

    need_one("DATA", data)
    need_one("--algorithm", algorithm)
    need_one("--seed", seed)
    need_one("--learning-rate", learning_rate)
    refs = [DataRef(str(path), keep, keep_seed, side, action, fingerprint(path)) for path in data]
    where = grid.evaluation_env(data, env)
    specs = []
    for name, settings in grid.combinations(algorithm, set):
        plan = Spec(
            algorithm=name,
            hidden=hidden,
            stack=stack,
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
        )
        specs.append(resolve(plan, settings))
    members = grid.jobs(refs, specs, seed, learning_rate, target_period)
    left = [job for job in members if not is_finished(out / job.id)]
    with console.bar(f"training {len(left)} members", steps * len(left), "updates") as bar:
        interval = specs[0][0].every
        folders = api.local.run(
            members,
            out,
            lambda progress: bar.advance(
                progress.step - (progress.step - 1) // interval * interval,
                progress.metrics.get("return"),
            ),
        )
    console.show_runs(result_rows.find(folders), as_json)
    console.show_policies(folders)


def evaluate(
    policy: Positional[Annotated[Path, arg(metavar="POLICY")]],
    /,
    env: EnvName,
    episodes: int = 100,
    epsilon: float = 0.4**8,
    gamma: float | None = None,
    noise: float = 0.0,
    seed: int = 0,
    as_json: Json = False,
) -> None:
    """Evaluate a saved policy in an environment.

    Args:
        episodes: Episodes to play.
        epsilon: Share of random actions (the paper's 0.4^8).
        gamma: Discount for the value figures. Default: the one it was trained with.
        noise: Probability that the environment executes a random action instead.
        seed: Seed of the episodes.
    """
    from rbve import api

    figures = api.evaluate(policy, env, episodes, epsilon, gamma, noise, seed)
    console.show_figures(f"{policy} in {env}", figures, as_json)


def report(
    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUNS")]],
    /,
    out: Path = Path("report.html"),
    as_json: Json = False,
) -> None:
    """Write a page of learning curves, final returns and over-estimation from result rows.

    Args:
        out: The page; figures and a CSV file go into a folder beside it.
    """
    from rbve import rows
    from rbve.report import write_report

    need_one("RUNS", runs)
    page = write_report(runs, out)
    console.show_runs(rows.find(runs), as_json)
    print(f"report: {page}", file=sys.stderr)


def need_one(name: str, values: Sequence[Any]) -> None:
    if len({*values}) < len(values):
        raise ValueError(f"{name} names a value twice")
    if not values:
        raise ValueError(f"{name} needs at least one value; add --help to see what it takes")


COMMANDS = {
    "demo": demo,
    "record": record,
    "convert": convert,
    "inspect": inspect,
    "train": train,
    "evaluate": evaluate,
    "report": report,
}


def main(arguments: Sequence[str] | None = None) -> None:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with console.one_line_errors():
            call = parse(given)
        call()
    except (ValueError, ImportError, OSError) as error:
        console.fail(str(error))
    except (MemoryError, OverflowError, RuntimeError) as error:
        first = (str(error) or "out of memory").splitlines()[0]
        console.fail(f"{type(error).__name__}: {first}; try smaller numbers")
    except KeyboardInterrupt:
        console.fail("interrupted; what was finished is kept", code=130)


def parse(given: list[str]) -> Any:
    """The chosen command with its arguments, not yet called."""
    return tyro.extras.subcommand_cli_from_dict(
        {name: held(command) for name, command in COMMANDS.items()},
        prog="rbve",
        description="Learn decisions from logged data when actions are discrete.",
        args=given,
    )


def held(command: Any) -> Any:
    @functools.wraps(command)
    def hold(*args: Any, **kwargs: Any) -> Any:
        return functools.partial(command, *args, **kwargs)

    return hold


if __name__ == "__main__":
    main()
