"""The Python interface, from a log to a decision: what policies are worth, and which to deploy."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rbve import backend
from rbve.audit import audit
from rbve.data import Dataset, load
from rbve.data.manifest import content_fingerprint, fingerprint
from rbve.off_policy.fits import FitPlan
from rbve.off_policy.judge import OpePlan, OpeResult
from rbve.off_policy.options import SelectOptions
from rbve.off_policy.run import GAMMA, Question, Target, answer, check_choice
from rbve.off_policy.select import Selection
from rbve.off_policy.select import select as selecting
from rbve.off_policy.tables import TABLES, read_table
from rbve.off_policy.targets import Deployment
from rbve.policy import Policy
from rbve.report import card, tune_page
from rbve.runtime.saved import policy_file
from rbve.sweep.cluster import Cluster, on_cluster
from rbve.training.run import POLICY, Progress
from rbve.tuning.options import TuneOptions
from rbve.tuning.search import Tuning
from rbve.tuning.search import tune as searching

__all__ = ["ope", "select", "tune"]


def ope(
    data: Dataset | str | Path,
    policies: Mapping[str, Target | str | Path] | Target | str | Path,
    *,
    gamma: float | None = None,
    epsilon: float = 0.0,
    temperature: float = 0.0,
    propensities: Any = None,
    by: str | None = None,
    interval: str = "student",
    level: float = 0.9,
    fit_steps: int = 20_000,
    folds: int = 2,
    seed: int = 0,
    seen: bool = False,
    bellman: bool = False,
    out: str | Path | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> OpeResult:
    """What policies are worth by a log alone: estimates, intervals and gates.

    Args:
        data: The log, a Dataset or the path of a store.
        policies: One policy, or several by name. A policy is a Policy, its file, a table of
            probabilities (a row per decision of the store, in its order, a column per action), or a
            function of observations (R, ...) and, if it takes a second argument, masks of legal
            actions, that gives such a table.
        gamma: Discount; None = the one the policies were trained with, else 0.99.
        epsilon: Share of random legal actions when trained policies act.
        temperature: Trained policies act by softmax(scores / temperature); 0 = by the best action.
        propensities: "logged" or "estimated"; None = logged where the log has them.
        by: A named column: values by its levels too.
        interval: "student", "bootstrap" or "bernstein", over episodes.
        level: Probability that an interval holds the value.
        fit_steps: Updates of each fit of values and propensities.
        folds: Parts of the episodes; each is judged by fits to the others.
        seed: Of folds and fits.
        seen: Judge by episodes that the policies were trained on; values come out too good.
        bellman: Also compare Q-functions by supervised Bellman validation, a fit more for each.
        out: Folder that keeps the fits, where an interrupted call resumes.
        on_progress: Called as fits go on.

    Returns:
        `behaviour` with its interval and a PolicyJudgement per policy: `result["name"].best` is the
        estimate to go by, None if all were refused; `gates` say why.

    Raises:
        ValueError: A policy does not fit the log, propensities or probabilities are none, or the
            policies were trained on these episodes; the message says what to do.

    Example:
        >>> log = rbve.load("data/visits")
        >>> uniform = np.full((log.num_transitions, 3), 1 / 3)
        >>> result = rbve.ope(log, {"uniform": uniform}, fit_steps=20)
        >>> [each.label for each in result["uniform"].estimates][:3]
        ['DR', 'WDR', 'WIS']
    """
    backend.prepare()
    named = dict(policies) if isinstance(policies, Mapping) else {"policy": policies}
    targets: dict[str, Target] = {
        name: Policy.load(each) if isinstance(each, str | Path) else each
        for name, each in named.items()
    }
    opened = data if isinstance(data, Dataset) else load(data, verify=False)
    mark = content_fingerprint(data) if isinstance(data, Dataset) else fingerprint(Path(data))
    acting = Deployment(epsilon, temperature)
    fit = FitPlan(fit_steps, folds, seed, out=None if out is None else Path(out))
    plan = OpePlan(propensities=propensities, fit=fit, interval=interval, level=level)
    question = Question(targets, acting, gamma, by, seen, mark, bellman)
    return answer(opened, question, plan, on_progress)


def select(
    data: str | Path,
    out: str | Path,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    cluster: str | Cluster | None = None,
    **options: Any,
) -> Selection:
    """Audit a log, train candidates, judge them and their checkpoints, recommend.

    Args:
        data: Path of a store.
        out: Folder for runs, fits, `card.html` and, if one is recommended, `policy.safetensors`; an
            interrupted call resumes there.
        on_progress: Called as training and fits go on.
        cluster: A Ray cluster on which candidates train, as rbve.train takes it; fits stay here.
        **options: Fields of rbve.off_policy.options.SelectOptions, the flags of `rbve select`:
            algorithm, steps, checkpoints, holdout, gamma, ...

    Returns:
        `recommendation` (decision, policy, reasons), `result` with every judgement, `policies`.

    Raises:
        ValueError: The audit says not to train on this log, or it cannot judge; the message says
            what to do.

    Example:
        >>> chosen = rbve.select(
        ...     "data/visits", "select", algorithm=("bc",), steps=20, checkpoints=1, fit_steps=20
        ... )
        >>> chosen.recommendation.decision in ("deploy", "stay", "collect")
        True
    """
    backend.prepare()
    known = SelectOptions(**options)
    dataset = load(data)
    check_choice(dataset)
    checked = audit(dataset, GAMMA if known.gamma is None else known.gamma)
    if checked.verdict == "stop":
        names = ", ".join(each.name for each in checked.findings)
        raise ValueError(
            f"{data}: the audit says not to train on this log ({names}); `rbve inspect {data}` "
            "says what to do about it"
        )
    chosen = selecting(Path(data), dataset, known, Path(out), on_progress, on_cluster(cluster))
    card.write(chosen, checked, str(data), Path(out) / "card.html")
    if chosen.recommendation.decision == "deploy":
        chosen.policies[str(chosen.recommendation.policy)].save(Path(out) / POLICY)
    else:  # one that an earlier call recommended
        (Path(out) / POLICY).unlink(missing_ok=True)
    return chosen


def tune(
    data: str | Path,
    out: str | Path,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    cluster: str | Cluster | None = None,
    **options: Any,
) -> Tuning:
    """Search for the settings that serve a log best, by successive halving (extra `tune`).

    Args:
        data: Path of a store.
        out: Folder for the study, runs, fits, `index.html` and `policy.safetensors`, that of the
            best trial; an interrupted call resumes there, and one with more `trials` goes on.
        on_progress: Called as training and fits go on.
        cluster: A Ray cluster on which trials train, as rbve.train takes it.
        **options: Fields of rbve.tuning.options.TuneOptions, the flags of `rbve tune`: algorithm,
            search, trials, steps, rungs, criterion, ...

    Returns:
        `best`, all `trials`, and how much of the difference between them each name explains.

    Raises:
        ValueError: A name or range is none, or `out` holds another search.
        ImportError: Optuna is not installed.

    Example:
        >>> found = rbve.tune(
        ...     "data/visits", "tune", search=("lam=0.05,0.5",), trials=2, rungs=1, steps=20,
        ...     criterion="heldout_value_rmse",
        ... )
        >>> found.best.tried["lam"] in ("0.05", "0.5")
        True
    """
    backend.prepare()
    known = TuneOptions(**options)
    folder = Path(out)
    found = searching(Path(data), load(data), known, folder, on_progress, on_cluster(cluster))
    tune_page.write(found, str(data), folder)
    if found.best is not None:
        Policy.load(folder / "runs" / found.best.job / POLICY).save(folder / POLICY)
    return found


def named_policies(
    files: Sequence[Path], data: Path, algorithm: str | Path | None = None
) -> dict[str, Target]:
    """Saved policies and tables of probabilities by their files, each under a short name.

    Args:
        files: Of policies or their runs' folders; tables are known by how their names end.
        data: The log, whose actions name the columns of a table.
        algorithm: File of the policies' algorithm.
    """
    backend.prepare()
    loaded: list[Target] = [
        read_table(file, load(data, verify=False).actions)
        if file.suffix in TABLES
        else Policy.load(policy_file(file), algorithm)
        for file in files
    ]
    if twice := [file for file, count in Counter(map(Path.resolve, files)).items() if count > 1]:
        raise ValueError(f"{twice[0]}: given twice")
    folders = [file if file.is_dir() else file.parent for file in files]
    names = [each.algorithm.name if isinstance(each, Policy) else file.stem
             for file, each in zip(files, loaded, strict=True)]  # fmt: skip
    # The shortest of three that tells it from the others.
    others = ([f"{folder.name}/{name}" if file.suffix in TABLES else folder.name
               for file, folder, name in zip(files, folders, names, strict=True)],
              [str(file) for file in files])  # fmt: skip
    for longer in others:
        count = Counter(names)
        names = [more if count[name] > 1 else name
                 for name, more in zip(names, longer, strict=True)]  # fmt: skip
    return dict(zip(names, loaded, strict=True))
