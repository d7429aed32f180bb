"""`rbve train`. Its flags are the fields of a Spec, whose texts are their help."""

import dataclasses
import itertools
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import docstring_parser
from tyro.conf import Positional, UseAppendAction, arg

from rbve import algorithms
from rbve.cli import _console, _ending
from rbve.cli._arguments import (
    ClusterName,
    ExecutorName,
    Gpus,
    HostsText,
    Json,
    LogNames,
    cluster_of,
    find_modules_here,
    need_one,
)
from rbve.spec import Spec, layout_of
from rbve.sweep.config import SweepConfig, field_names, parse_values, read_config, write_config
from rbve.sweep.executors import DEFAULT
from rbve.training import presets

RESUMES = True
_POLICIES = 8  # whose files are named at the end
_USUAL = Spec.of(env="auto")
_SEVERAL = ("algorithm", "seed", "learning_rate")  # take several values after their flag
_HELP = {
    "algorithm": f"One or more of {', '.join(algorithms.names())}, or a path to a .py file.",
    "seed": "One or more seeds of weights and batches.",
    "learning_rate": "One or more Adam step sizes (paper: 8e-5, 1e-4 or 3e-4).",
}


@dataclasses.dataclass(frozen=True)
class _TrainFlags:
    """Flags that are not fields of a Spec.

    Attributes:
        data: One or more stores, as `rbve record` and `rbve convert` write them.
        out: Folder for rows, checkpoints and policies, one sub-folder per member.
        set: A setting of the algorithm, NAME=VALUE or NAME=VALUE,VALUE to try several; repeatable
            (rbve: lam, nu, beta, cap, filter, normalise, form, bounded; cql: alpha; ...).
        vary: Several values of any field, FIELD=VALUE,VALUE (gamma=0.9,0.99; hidden=64,128x128);
            repeatable.
        config: TOML file with fields; flags go first. --print-config writes one.
        print_config: Print what the other flags mean as such a file, and train nothing.
        preset: The paper's settings for a benchmark, where neither flag nor file says otherwise:
            rlu-atari, rlu-dmlab, small-memory. Add --help to see them.
        devices: Over how many accelerators (or cores) every batch is split.
            Results change in the last digits alone.
    """

    data: Positional[Annotated[tuple[Path, ...], arg(metavar="DATA")]] = ()
    out: Path = Path("runs")
    set: UseAppendAction[tuple[str, ...]] = ()
    vary: UseAppendAction[tuple[str, ...]] = ()
    config: Path | None = None
    print_config: bool = False
    preset: Annotated[str | None, arg(metavar="NAME")] = None
    devices: int = 1
    executor: ExecutorName = DEFAULT
    cluster: ClusterName = None
    gpus: Gpus = 0.0
    hosts: HostsText = None
    log: LogNames = ()
    as_json: Json = False


def command(flags: Any) -> None:
    """Train on one or more datasets: every combination of data, algorithm, setting and seed.

    Members run on all cores. Ctrl-C and SIGTERM end it within seconds (a second one at once). Run
    the same command again and it goes on where it stopped, to the same result; finished members are
    kept. Where a checkpoint is damaged, the one before it serves.

    Exit codes: 0 done, 2 bad input or a damaged run (the others are trained), 5 a member diverged
    (its policy holds the last finite weights, and says so), 130 Ctrl-C, 143 SIGTERM.
    """
    config = _asked(flags)
    if flags.print_config:
        print(write_config(config, _USUAL), end="")
        return
    if not config.base.data.path and "path" not in config.vary:
        need_one("DATA", ())
    _train(flags, config)


def parser(words: Sequence[str]) -> type:
    """The class of the flags, whose defaults are those of the preset and the file among `words`."""
    usual = SweepConfig(_USUAL, {})
    usual = usual.with_fields(presets.load(_value(words, "--preset")), {})
    if file := _value(words, "--config"):
        usual = read_config(Path(file), usual)
    own, layout = usual.base.flat(), layout_of()
    fields = []
    for name in field_names():
        if name == "path":
            continue
        hint: Any = layout.hints[name]
        default = own[name]
        if name in _SEVERAL:
            hint = types.GenericAlias(tuple, (hint, ...))
            default = tuple(usual.vary.get(name, [default]))
        elif hint is int and default is None:
            default = 0
        elif name == "env":
            hint, default = str, default or "none"
        elif default is None:
            hint = hint | None if type(None) not in get_args(hint) else hint
        fields.append((name, Annotated[hint, arg(help=_help()[name])], default))
    varied = {k: v for k, v in usual.vary.items() if k not in _SEVERAL}
    named = {word.partition("=")[0].replace("_", "-") for word in words}
    kept = {k: v for k, v in varied.items() if _flag(k) not in named}
    kind = dataclasses.make_dataclass(
        "Flags",
        fields,
        bases=(_TrainFlags,),
        frozen=True,
        namespace={"_usual": SweepConfig(usual.base, kept), "__call__": command},
    )
    kind.__doc__ = command.__doc__
    return kind


def _asked(flags: Any) -> SweepConfig:
    fields = {k: getattr(flags, k) for k in field_names() if k not in ("path", *_SEVERAL)}
    vary: dict[str, Any] = {name: list(getattr(flags, name)) for name in _SEVERAL}
    vary |= flags._usual.vary | parse_values(flags.vary, "--vary", fields=True)
    settings = parse_values(flags.set, "--set", fields=False)
    if flags.data:
        vary["path"] = [str(path) for path in flags.data]
    for name in (*_SEVERAL, "path"):
        need_one("DATA" if name == "path" else _flag(name), vary.get(name, [None]))
    single = {name: values[0] for name, values in vary.items() if len(values) == 1}
    several = {name: values for name, values in vary.items() if len(values) > 1}
    return SweepConfig(flags._usual.base, {}).with_fields(fields | single, several | settings)


def _train(flags: Any, config: SweepConfig) -> None:
    from rbve import api, rows
    from rbve.audit.verdict import counted
    from rbve.evaluation.metric import run_warnings
    from rbve.loggers import Loggers
    from rbve.sweep import grid
    from rbve.sweep.hosts import Hosts, Lost
    from rbve.sweep.run import run_jobs
    from rbve.training.notes import notes, period_notes
    from rbve.training.run import is_finished

    jobs = grid.jobs(*config)
    paths = [Path(path) for path in dict.fromkeys(job.data.path for job in jobs)]
    for env in {job.evaluation.env for job in jobs}:
        find_modules_here(env)
        where, missing = grid.evaluation_env(paths, env or "none")
        _console.show_notes(missing)
        jobs = [job.varied(env=where) if job.evaluation.env == env else job for job in jobs]
    opened = {str(path): api.load(path, "native", verify=False) for path in paths}
    if any(not job.network.stack for job in jobs):
        presets.frames_to_join([each.obs_shape for each in opened.values()])
    jobs = [grid.identified(job, opened[job.data.path]) for job in jobs]
    for path, each in opened.items():
        _console.show_notes(notes(path, each, jobs))
    left = [job for job in jobs if not is_finished(flags.out / job.id)]
    updates = sum(job.steps for job in left)
    title = f"training {counted(len(left), 'member')}"
    with Loggers(flags.log, flags.out) as log, _console.bar(title, updates, "updates") as bar:

        def on_progress(progress: Any) -> None:
            bar.trained(progress)
            log(progress)

        cluster = cluster_of(flags.cluster, flags.gpus, bar.cluster)
        means: Any = {"devices": flags.devices, "executor": flags.executor, "cluster": cluster}
        means["hosts"] = Hosts.read(flags.hosts) if flags.hosts else None
        try:
            folders = run_jobs(jobs, flags.out, on_progress, **means)
        except Lost as error:
            _console.tell(f"rbve: {error}")
            _ending.leave_at_once(2)  # JAX would wait for the others, and then abort
    _console.show_notes(period_notes(jobs))
    runs = rows.find(folders)
    _console.show_runs(runs, flags.as_json)
    for folder in folders[:_POLICIES]:
        _console.tell(f"policy: {folder / 'policy.safetensors'}")
    if len(folders) > _POLICIES:
        _console.tell(f"and {len(folders) - _POLICIES} more beside them")
    if judged := [run for run in runs if "held_out_episodes" in run.facts]:
        place = flags.out / judged[0].job / "policy.safetensors"
        _console.tell(
            "held-out episodes did not train; what a policy is worth, by them: "
            f"rbve ope {place} {judged[0].field('path')}"
        )
    for run in runs:
        _console.show_notes(run_warnings(run.job, run))
    ends = {run.job: run.last("diverged_at") for run in runs}
    if lines := [f"{job} at update {at:,.0f}" for job, at in ends.items() if at is not None]:
        _console.fail(
            f"diverged: {', '.join(lines)}; their policies are the last finite weights: lower "
            "--learning-rate, or use a method that stays closer to the data",
            code=5,
        )


def _help() -> dict[str, str]:
    """Flat name -> text, from the docstrings of the Spec and its parts."""
    kinds = [Spec, *(hint for hint in get_type_hints(Spec).values() if isinstance(hint, type))]
    documented = [docstring_parser.parse(kind.__doc__ or "") for kind in kinds]
    texts = {each.arg_name: each.description or "" for doc in documented for each in doc.params}
    return {name: texts.get(name, "").replace("\n", " ") for name in field_names()} | _HELP


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _value(words: Sequence[str], flag: str) -> str | None:
    parts = [part for word in words for part in word.split("=", 1)]
    return next((b for a, b in itertools.pairwise(parts) if a == flag), None)
