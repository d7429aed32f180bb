"""Successive halving over cohorts of trials, whose proposals and order are kept in one file.

OUT/study.journal           every trial, as Optuna keeps it
OUT/runs/<job>/rows.jsonl   runs; a rung is a finished job, and the next one goes on from it
OUT/fits/                   fits of values, where those judge

Whatever is killed, the same call goes on: trials without an end are run again, from what is there.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rbve.data.dataset import Dataset
from rbve.files import locked
from rbve.parts import default_period
from rbve.spec import Spec
from rbve.sweep.cluster import Cluster
from rbve.sweep.config import field_names, parse_values
from rbve.sweep.grid import evaluation_env, identified
from rbve.sweep.run import run_jobs
from rbve.training.run import Progress
from rbve.tuning import criterion
from rbve.tuning.options import TuneOptions
from rbve.tuning.space import Space, complete, parse, settings_of, suggest, words_of

JOURNAL = "study.journal"
_EVERY = "rbve"  # the one study of a journal
_ASKED = "asked"  # attribute of the study: what it is of
_ENOUGH = 8  # trials to tell what mattered
_EVALUATIONS = 10  # of a trial that is judged at its end alone


@dataclass(frozen=True)
class Trial:
    """One combination and what came of it."""

    number: int
    tried: dict[str, str]  # name -> value, in words
    job: str  # id of its longest run
    steps: int  # of that run
    value: float | None  # None where it diverged
    state: str  # "finished", "stopped" at a rung, "diverged"


@dataclass(frozen=True)
class Tuning:
    """A finished search.

    Attributes:
        trials: All of them, in order.
        best: The finished trial with the best figure; None where every one diverged.
        importance: Share of what sets good trials apart from the others, by name.
    """

    criterion: str
    maximise: bool
    trials: tuple[Trial, ...]
    best: Trial | None
    importance: dict[str, float]
    options: TuneOptions
    space: Space


def tune(
    data: Path,
    dataset: Dataset,
    options: TuneOptions,
    out: Path,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    cluster: Cluster | None = None,
) -> Tuning:
    """Search, or go on with the search that `out` holds.

    Raises:
        ValueError: A name or range is none, or `out` holds another search.
        ImportError: Optuna is not installed.
    """
    optuna = _imported()
    fixed = _fixed(options.set)
    space = complete(parse(options.search), options.algorithm, fixed)
    env, missing = evaluation_env([data], options.env)
    for note in missing:
        warnings.warn(note, stacklevel=2)
    base = _base(data, dataset, options, env, fixed)
    figure = criterion.chosen(options, env, dataset, base.data.fingerprint)
    with locked(out):
        out.mkdir(parents=True, exist_ok=True)
        study = _study(optuna, out, options, figure, base, space)
        while len(_ended(study)) < options.trials:
            cohort = {
                trial: _job(base, tried) for trial, tried in _cohort(optuna, study, options, space)
            }
            _race(optuna, study, cohort, figure, options, out, on_progress, cluster)
        trials = [_trial(each, base, space, options) for each in _ended(study)]
        importance = _importance(optuna, study)
    finished = [each for each in trials if each.state == "finished" and each.value is not None]
    sign = 1 if figure.maximise else -1
    best = max(finished, key=lambda each: sign * (each.value or 0.0), default=None)
    return Tuning(figure.name, figure.maximise, tuple(trials), best, importance, options, space)


def _imported() -> Any:
    try:
        import optuna
        import optuna.storages.journal
    except ImportError:
        raise ImportError('rbve tune needs Optuna: pip install "rbve[tune]"') from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _fixed(words: Sequence[str]) -> dict[str, Any]:
    fixed: dict[str, Any] = {}
    for word in words:
        name = word.partition("=")[0].replace("-", "_")
        values = parse_values([word], "--set", fields=name in field_names())
        if len(values[name]) > 1:
            raise ValueError(f"--set keeps one value; to try several, --search {word}")
        fixed[name] = values[name][0]
    return fixed


def _base(
    data: Path, dataset: Dataset, options: TuneOptions, env: str | None, fixed: dict[str, Any]
) -> Spec:
    """What all trials share. Intervals are those of the first rung, at every rung: a longer job
    then goes on from a shorter one."""
    own = {"holdout": 0.0} if env else {"holdout": options.holdout, "holdout_seed": options.seed}
    first = options.rung_steps[0]
    base = Spec.of(
        path=str(data), algorithm=options.algorithm[0], steps=options.steps, seed=options.seed,
        every=first if options.rungs > 1 else max(1, first // _EVALUATIONS), env=env,
        target_period=default_period(options.steps), eval_episodes=options.eval_episodes,
        **own, **fixed,
    )  # fmt: skip
    named = identified(_of(base, base.algorithm), dataset)
    return base.varied(
        fingerprint=named.data.fingerprint, group=named.group, replicate=named.replicate
    )


def _of(base: Spec, algorithm: str) -> Spec:
    """With another algorithm, and those fixed settings that it knows."""
    known = settings_of(algorithm)
    kept = {name: value for name, value in base.settings.items() if name in known}
    return replace(base, settings={}).varied(algorithm=algorithm, **kept)


def _job(base: Spec, tried: dict[str, Any]) -> Spec:
    return _of(base, tried["algorithm"]).varied(**tried).resolved()


def _study(
    optuna: Any, out: Path, options: TuneOptions, figure: Any, base: Spec, space: Space
) -> Any:
    """The study of this folder, which no process that was killed still holds."""
    file = out / JOURNAL
    for left in out.glob(f"{JOURNAL}.lock*"):  # out itself is locked
        left.unlink()
    _drop_torn_line(file)
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(file)))
    study = optuna.create_study(
        storage=storage, study_name=_EVERY, load_if_exists=True, direction="maximize"
    )
    asked = {
        "algorithm": list(options.algorithm),
        "space": {name: repr(choice) for name, choice in space.items()},
        "criterion": figure.name,
        "number of updates to a rung": options.rung_steps,
        "reduction": options.reduction,
        "dataset, seed or fixed setting": base.id,
    }
    before = study.user_attrs.get(_ASKED)
    if before is not None and before != asked:
        changed = next(name for name in asked if before.get(name) != asked[name])
        raise ValueError(
            f"{file}: a search with another {changed}; give another --out, or the same flags (more "
            "--trials go on with it)"
        )
    if before is None:
        study.set_user_attr(_ASKED, asked)
    return study


def _drop_torn_line(file: Path) -> None:
    """What a process that was killed left of the line it wrote."""
    with suppress(FileNotFoundError), open(file, "r+b") as journal:
        content = journal.read()
        journal.truncate(content.rfind(b"\n") + 1)


def _ended(study: Any) -> list[Any]:
    return [each for each in study.get_trials(deepcopy=False) if each.state.is_finished()]


def _cohort(
    optuna: Any, study: Any, options: TuneOptions, space: Space
) -> list[tuple[Any, dict[str, Any]]]:
    """Trials that a killed process left, and new ones up to a whole cohort; what each tries.

    A cohort that was cut is ended before the next begins: who goes on depends on who is compared.
    """
    every = study.get_trials(deepcopy=False)
    left = [each for each in every if not each.state.is_finished()]
    first = left[0].number if left else len(every)
    stop = min((first // options.at_once + 1) * options.at_once, options.trials)
    cohort = []
    for k in range(len(left) + max(0, stop - len(every))):
        number = left[k].number if k < len(left) else len(every) + k - len(left)
        seed = options.seed * 1_000_003 + number  # proposals of a search that was cut are the same
        if options.sampler == "tpe":
            study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        else:
            study.sampler = optuna.samplers.RandomSampler(seed=seed)
        trial = optuna.trial.Trial(study, left[k]._trial_id) if k < len(left) else study.ask()
        cohort.append((trial, suggest(trial, space, options.algorithm)))
    return cohort


def _race(
    optuna: Any,
    study: Any,
    cohort: dict[Any, Spec],
    figure: criterion.Criterion,
    options: TuneOptions,
    out: Path,
    on_progress: Callable[[Progress], None],
    cluster: Cluster | None,
) -> None:
    """From rung to rung: train, judge, and stop the worse; each end is kept as it is known."""
    running = dict(cohort)
    ended = optuna.trial.TrialState
    for rung, steps in enumerate(options.rung_steps):
        short = [job.varied(steps=steps) for job in running.values()]
        run_jobs(short, out / "runs", on_progress, cluster=cluster)
        values = figure.values(short, out, on_progress)
        for trial, value in zip(running, values, strict=True):
            trial.set_user_attr("steps", steps)
            trial.set_user_attr("value", None if math.isnan(value) else value)
            known = study._storage.get_trial(trial._trial_id).intermediate_values
            if not math.isnan(value) and rung not in known:
                trial.report(value if figure.maximise else -value, rung)
        every = [
            each.intermediate_values[rung]
            for each in study.get_trials(deepcopy=False)
            if rung in each.intermediate_values
        ]
        every.sort(reverse=True)
        least = every[max(1, len(every) // options.reduction) - 1] if every else 0.0
        for trial, value in zip(list(running), values, strict=True):
            if math.isnan(value):
                study.tell(trial, state=ended.FAIL)
            elif steps == options.steps:
                study.tell(trial, value if figure.maximise else -value)
            elif (value if figure.maximise else -value) < least:
                study.tell(trial, state=ended.PRUNED)
            else:
                continue
            del running[trial]


def _trial(each: Any, base: Spec, space: Space, options: TuneOptions) -> Trial:
    steps, value = each.user_attrs.get("steps", 0), each.user_attrs.get("value")
    job = _job(base, suggest(_Told(each.params), space, options.algorithm))
    state = {"COMPLETE": "finished", "PRUNED": "stopped", "FAIL": "diverged"}[each.state.name]
    tried = {name: _words(value) for name, value in each.params.items()}
    return Trial(each.number, tried, job.varied(steps=steps).id, steps, value, state)


class _Told:
    """A trial that proposes what another one did."""

    def __init__(self, params: dict[str, Any]) -> None:
        self._params = params

    def suggest_categorical(self, name: str, values: Any) -> Any:
        return self._params[name]

    def suggest_float(self, name: str, low: float, high: float, log: bool) -> Any:
        return self._params[name]

    suggest_int = suggest_float


def _words(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else words_of(value)


def _importance(optuna: Any, study: Any) -> dict[str, float]:
    """By the first rung, to which all trials came; empty where they are too few to tell."""
    compared = [each for each in _ended(study) if 0 in each.intermediate_values]
    if len(compared) < _ENOUGH:
        return {}
    flat = optuna.create_study(direction="maximize")
    for each in compared:
        own = {"params": each.params, "distributions": each.distributions}
        flat.add_trial(optuna.trial.create_trial(value=each.intermediate_values[0], **own))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = optuna.importance.get_param_importances(
                flat, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
            )
        except (ValueError, RuntimeError, ZeroDivisionError):  # nothing varied among them
            return {}
    return {name: float(share) for name, share in found.items() if math.isfinite(share)}
