"""From policies of any kind and a log to a judgement: targets, held-out episodes, fits, groups."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.manifest import IN_MEMORY
from rbve.off_policy import intervals
from rbve.off_policy.behaviour import behaviour_of
from rbve.off_policy.bellman import bellman_errors
from rbve.off_policy.fits import Fits, Rest, at_once, fit_values
from rbve.off_policy.groups import Subgroup, check_column, groups_by
from rbve.off_policy.judge import OpePlan, OpeResult, PolicyJudgement, every_row, judge
from rbve.off_policy.log import DecisionLog
from rbve.off_policy.targets import Deployment, probabilities
from rbve.off_policy.values import ValueCheck, check_values
from rbve.parts import DataRef
from rbve.policy import Policy
from rbve.policy.outputs import check_fit
from rbve.training.run import Progress

Target = Policy | np.ndarray | Callable[..., Any]
GAMMA = 0.99  # where no policy says one


@dataclass(frozen=True)
class Question:
    """What is asked of a log.

    Attributes:
        targets: Policies, tables of probabilities or functions, by name.
        acting: How trained policies act.
        gamma: Discount; None = the one the policies were trained with.
        by: A column of the observations: values by its levels, or by quarters of its range.
        seen: Whether episodes that a policy was trained on may judge it.
        fingerprint: Of the store, to recognise episodes that a policy was trained on.
        bellman: Whether to compare Q-functions by supervised Bellman validation too.
    """

    targets: Mapping[str, Target]
    acting: Deployment = field(default_factory=Deployment)
    gamma: float | None = None
    by: str | None = None
    seen: bool = False
    fingerprint: str = ""
    bellman: bool = False


def answer(
    dataset: Dataset,
    question: Question,
    plan: OpePlan,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> OpeResult:
    """Judge every target by the episodes that no policy among them was trained on.

    Raises:
        ValueError: A target does not fit the log, no held-out episode is left, or the log cannot
            be followed; the message says what to do.
    """
    policies = {name: each for name, each in question.targets.items() if isinstance(each, Policy)}
    if not question.targets:
        raise ValueError("name at least one policy to judge")
    check_choice(dataset)
    log, rest = _split(dataset, question, policies)
    if question.by is not None:
        check_column(log, question.by)  # before hours of fits
    for name, target in question.targets.items():  # before hours of fits, too
        try:
            if isinstance(target, Policy):
                check_fit(target, log.dataset)
            else:
                _table(question, name, dataset, log)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    own = {name: plan.fit.suited_to(policy) for name, policy in policies.items()}
    first = max(own.values(), key=lambda each: each.memory, default=plan.fit)
    behaviour = behaviour_of(log, first, plan.propensities, on_progress)
    beyond = None
    if log.cut.any():
        [beyond] = fit_values(log, [every_row(log, behaviour)], first, on_progress)
    judged: dict[str, PolicyJudgement] = {}
    for each in dict.fromkeys([own.get(name, first) for name in question.targets]):
        alike = [name for name in question.targets if own.get(name, first) == each]
        for names in at_once(log, alike):
            tables = {name: _table(question, name, dataset, log) for name in names}
            others = _rest(question, names, dataset, rest)
            found = fit_values(log, list(tables.values()), each, on_progress, others)
            fits = dict(zip(names, found, strict=True))
            result = judge(log, tables, fits, behaviour, plan, beyond)
            judged |= {one.policy: one for one in result.judgements}
    result = replace(result, judgements=tuple(judged[name] for name in question.targets))
    checks: dict[str, ValueCheck] = {
        name: check_values(policy, log, question.acting) for name, policy in policies.items()
        if policy.algorithm.values
    }  # fmt: skip
    errors: dict[str, float] = {}
    if question.bellman:
        errors = bellman_errors(log, {name: policies[name] for name in checks}, first, on_progress)
    grouped: tuple[Subgroup, ...] = ()
    if question.by is not None:
        make = partial(intervals.METHODS[plan.interval], level=plan.level)
        best = {each.policy: each.best for each in result.judgements}
        influence = {name: each.influence for name, each in best.items() if each is not None}
        grouped = groups_by(log, question.by, result.returns, influence, make)
    return replace(
        result,
        values=checks,
        groups=grouped,
        by=question.by or "",
        bellman_errors=errors,
        acting=question.acting.words if policies else "",
    )


def fit_of(
    name: str,
    dataset: Dataset,
    question: Question,
    plan: OpePlan,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Fits:
    """That of one policy among the targets; read again where the plan keeps fits."""
    policies = {key: each for key, each in question.targets.items() if isinstance(each, Policy)}
    log, rest = _split(dataset, question, policies)
    own = plan.fit.suited_to(policies[name])
    table = _table(question, name, dataset, log)
    [fit] = fit_values(log, [table], own, on_progress, _rest(question, [name], dataset, rest))
    return fit


def _rest(
    question: Question, names: Sequence[str], dataset: Dataset, rest: DecisionLog | None
) -> Rest | None:
    if rest is None:
        return None
    return Rest(rest, (_table(question, name, dataset, rest) for name in names))


def check_choice(dataset: Dataset) -> None:
    """ValueError where a log leaves nothing to choose."""
    if dataset.num_actions < 2:
        raise ValueError(
            f"the log holds one action, {dataset.actions[0]!r}, so that there is no choice to "
            "judge; give a log in which decisions differ"
        )


def _table(question: Question, name: str, dataset: Dataset, log: DecisionLog) -> np.ndarray:
    """(R, A) of a target on the rows of some of the dataset's episodes."""
    target = question.targets[name]
    if isinstance(target, Policy):
        return probabilities(target, log.dataset, question.acting)
    if callable(target):
        return probabilities(target, log.dataset)
    return probabilities(target, dataset)[log.store_rows]


def _gamma(question: Question, policies: Mapping[str, Policy]) -> float:
    if question.gamma is not None:
        return question.gamma
    trained = {policy.trained.gamma for policy in policies.values()}
    if len(trained) > 1:
        listed = ", ".join(f"{each:g}" for each in sorted(trained))
        raise ValueError(
            f"these policies were trained with different discounts ({listed}); say with --gamma "
            "which one their values are compared by"
        )
    return trained.pop() if trained else GAMMA


class _Split(NamedTuple):
    judging: DecisionLog
    rest: DecisionLog | None  # what the policies were trained on, which fits learn from too


def _split(dataset: Dataset, question: Question, policies: Mapping[str, Policy]) -> _Split:
    """The episodes that no policy was trained on, as far as files tell, and the others."""
    # Row numbers stand in the policy's column while episodes are chosen, to find rows of tables.
    numbered = replace(dataset, policy=np.arange(len(dataset.action))[:, None])
    gamma = _gamma(question, policies)

    def followed(part: Dataset, *notes: str) -> DecisionLog:
        log = DecisionLog.of(part, gamma)
        rows = np.asarray(log.dataset.policy)[:, 0]
        first = rows[log.dataset.offsets[:-1]]
        return replace(
            log,
            dataset=replace(log.dataset, policy=None),
            notes=(*notes, *log.notes),
            store_rows=rows,
            numbers=np.searchsorted(dataset.offsets, first, "right") - 1,
        )

    refs = _trained_on(question, policies)
    if not refs:
        in_memory = question.fingerprint.startswith(IN_MEMORY)
        return _Split(followed(numbered, *([_UNTOLD] if in_memory and policies else [])), None)
    if question.seen:
        return _Split(followed(numbered, _SEEN), None)
    without = [name for name, ref in refs.items() if not ref.holdout]
    if without:
        raise ValueError(
            f"{without[0]} was trained on all of these episodes, by which it cannot be judged: "
            "give a log it has not seen, train with --holdout 0.2, or add --seen to see numbers "
            "that are too good"
        )
    chosen = {replace(ref, path="") for ref in refs.values()}
    if len(chosen) > 1:
        raise ValueError(
            "these policies hold out different episodes, so none is new to all of them; train them "
            "with one --holdout and --holdout-seed"
        )
    ref = chosen.pop()
    part = ref.held_out(numbered)
    if part is None:
        raise ValueError("no episode is held out; train with --holdout 0.2 on 5 episodes or more")
    judging = followed(
        part,
        f"judged by the {part.num_episodes:,} of {dataset.num_episodes:,} episodes that were held "
        "out of training",
    )
    try:
        return _Split(judging, followed(ref.of(numbered)))
    except ValueError:  # fragments alone
        return _Split(judging, None)


def _trained_on(question: Question, policies: Mapping[str, Policy]) -> dict[str, DataRef]:
    """Of the policies that were trained on this store, which of its episodes."""
    refs = {}
    for name, policy in policies.items():
        content = policy.info.get("job", {}).get("data", {})
        if question.fingerprint and content.get("fingerprint") == question.fingerprint:
            refs[name] = DataRef(**{k: v for k, v in content.items() if k in _REF})
    return refs


_REF = frozenset(DataRef.__dataclass_fields__)
_SEEN = (
    "these policies were trained on some of these episodes, and are judged by them all the same: "
    "values come out too good"
)
_UNTOLD = (
    "nothing tells whether the policies were trained on these episodes, by which they cannot be "
    "judged; give the path of the store to be sure"
)
