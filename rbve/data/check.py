"""Values that would train silently wrong, found in whole columns and named by episode and step."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbve.data.episode import NO_ACTION
from rbve.data.features import is_finite32


def check_values(dataset: Any, where: str = "", first: int = 0) -> None:
    """Refuse a Dataset with such values; `where` opens the message, `first` numbers episodes."""
    for fault in faults(dataset):
        episode = int(np.searchsorted(dataset.offsets, fault.row, side="right")) - 1
        step = fault.row - int(dataset.offsets[episode])
        raise ValueError(f"{where}episode {first + episode}, step {step}: {fault.text}")


@dataclass(frozen=True)
class _Fault:
    row: int  # the first that is wrong
    count: int  # rows that are wrong like it
    text: str


def faults(dataset: Any) -> Iterator[_Fault]:
    """One for every kind of wrong value; checks run as they are asked for."""
    actions, rows, lengths = dataset.num_actions, len(dataset.action), np.diff(dataset.offsets)
    final = np.zeros(rows, bool)
    final[dataset.offsets[1:] - 1] = True
    fragment = np.repeat(~(dataset.complete | dataset.terminated), lengths)
    for name, column in (("action", dataset.action), ("executed action", dataset.executed)):
        if column is not None:
            yield from _fault(
                (column < NO_ACTION) | (column >= actions),
                f"{name} {{}} is not one of the {actions} actions (ids 0 to {actions - 1})",
                column,
            )
            yield from _fault(
                final & (column != NO_ACTION) & ~fragment,
                f"{name} {{}} in the row of the final observation, where no decision is left; it "
                f"needs {NO_ACTION}",
                column,
            )
    taken = dataset.action >= 0
    if dataset.legal is not None:
        chosen = np.clip(dataset.action, 0, actions - 1)
        yield from _fault(
            taken & ~dataset.legal[np.arange(rows), chosen],
            "action {} was taken and 'legal' says it is not; are the masks shifted?",
            dataset.action,
        )
        closed = np.repeat(dataset.terminated | ~dataset.finals_known, lengths)
        yield from _fault(
            ~(dataset.legal.any(axis=1) | (final & closed)),
            "no action is legal; only the row after a termination may say so",
        )
    if dataset.propensity is not None:
        with np.errstate(invalid="ignore"):
            possible = (dataset.propensity > 0) & (dataset.propensity <= 1)
        yield from _fault(
            taken & ~final & ~possible,
            "propensity {:g}; the probability of an action that was taken lies in (0, 1]",
            dataset.propensity,
        )
    for name, column in (("reward", dataset.reward), ("observation", dataset.obs)):
        if column.dtype.kind == "f":
            values = np.asarray(column).reshape(rows, -1)
            named = name == "observation" and dataset.features is not None
            finite = dataset.features.accepts(values) if named else is_finite32(values)
            if finite.all():
                continue
            wrong = ~finite.all(axis=1)
            for row in np.flatnonzero(wrong)[:1]:
                what = _not_finite(dataset, values[row], finite[row])
                text = f"the {name} is not finite {what}; repair or drop the episode"
                yield _Fault(int(row), int(wrong.sum()), text)
    yield from _fault(
        final & (dataset.reward != 0),
        "reward {:g} in the row of the final observation, where no decision is left; the reward "
        "of a decision stands in its own row",
        dataset.reward,
    )
    # The return of a fragment may be unknown, which NaN says.
    returns = dataset.episode_return
    unknown = np.zeros(rows, bool)
    unknown[dataset.offsets[:-1]] = ~(
        np.isfinite(returns) | (np.isnan(returns) & ~dataset.complete)
    )
    yield from _fault(unknown, "the episode's return is not finite")


def _fault(wrong: np.ndarray, text: str, column: Any = None) -> Iterator[_Fault]:
    """`text` takes the value of the column in the first row that is wrong."""
    if wrong.any():
        row = int(np.argmax(wrong))
        text = text if column is None else text.format(column[row])
        yield _Fault(row, int(wrong.sum()), text)


def _not_finite(dataset: Any, values: np.ndarray, finite: np.ndarray) -> str:
    """What and where it is in a row of an observation, or in a reward."""
    index = int(np.argmin(finite))
    kind = f"in 32 bits ({values[index]:g})" if np.isfinite(values[index]) else "(NaN or infinity)"
    if len(values) == 1:
        return kind
    name = repr(dataset.features.names[index]) if dataset.features else index
    return f"{kind} in column {name}"
