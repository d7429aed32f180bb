"""Values that would train silently wrong, found in whole columns and named by episode and step."""

from __future__ import annotations

from typing import Any

import numpy as np

from rbve.data.episode import NO_ACTION
from rbve.data.features import is_finite32


def check_values(dataset: Any, where: str = "", first: int = 0) -> None:
    """Refuse a Dataset with such values.

    `where` opens the message; `first` is the number of the first episode.
    """
    for fault in faults(dataset):
        episode = int(np.searchsorted(dataset.offsets, fault.row, side="right")) - 1
        step = fault.row - int(dataset.offsets[episode])
        raise ValueError(f"{where}episode {first + episode}, step {step}: {fault.text}")


class _Fault:
    """One row that is wrong, and how many are wrong like it."""

    def __init__(self, wrong: np.ndarray, text: Any) -> None:
        self.row = int(np.argmax(wrong))
        self.count = int(wrong.sum())
        self.text: str = text(self.row)


def faults(dataset: Any) -> Any:
    """Yields a Fault for every kind of wrong value; checks run as they are asked for."""
    final = np.zeros(len(dataset.action), bool)
    final[dataset.offsets[1:] - 1] = True
    fragment = np.repeat(~(dataset.complete | dataset.terminated), np.diff(dataset.offsets))
    for wrong, text in _checks(dataset, final, fragment):
        if wrong.any():
            yield _Fault(wrong, text)


def not_finite(dataset: Any, values: np.ndarray, finite: np.ndarray) -> str:
    """What and where it is in a row of an observation, or in a reward."""
    index = int(np.argmin(finite))
    kind = f"in 32 bits ({values[index]:g})" if np.isfinite(values[index]) else "(NaN or infinity)"
    if len(values) == 1:
        return kind
    name = repr(dataset.features.names[index]) if dataset.features else index
    return f"{kind} in column {name}"


def _checks(dataset: Any, final: np.ndarray, fragment: np.ndarray) -> Any:
    """(rows that are wrong, row -> message) of every check."""
    actions = dataset.num_actions
    rows = len(dataset.action)
    for name, column in (("action", dataset.action), ("executed action", dataset.executed)):
        if column is None:
            continue
        yield (
            (column < NO_ACTION) | (column >= actions),
            lambda row, name=name, column=column: (
                f"{name} {int(column[row])} is not one of the {actions} actions "
                f"(ids 0 to {actions - 1})"
            ),
        )
        yield (
            final & (column != NO_ACTION) & ~fragment,
            lambda row, name=name, column=column: (
                f"{name} {int(column[row])} in the row of the final observation, where no decision "
                f"is left; it needs {NO_ACTION}"
            ),
        )
    taken = dataset.action >= 0
    if dataset.legal is not None:
        known = np.clip(dataset.action, 0, actions - 1)
        closed = np.repeat(dataset.terminated | ~dataset.finals_known, np.diff(dataset.offsets))
        yield (
            taken & ~dataset.legal[np.arange(rows), known],
            lambda row: (
                f"action {int(dataset.action[row])} was taken and 'legal' says it is not; are the "
                "masks shifted?"
            ),
        )
        yield (
            ~(dataset.legal.any(axis=1) | (final & closed)),
            lambda row: "no action is legal; only the row after a termination may say so",
        )
    if dataset.propensity is not None:
        with np.errstate(invalid="ignore"):
            possible = (dataset.propensity > 0) & (dataset.propensity <= 1)
        yield (
            taken & ~final & ~possible,
            lambda row: (
                f"propensity {float(dataset.propensity[row]):g}; the probability of an action that "
                "was taken lies in (0, 1]"
            ),
        )
    for name, column in (("reward", dataset.reward), ("observation", dataset.obs)):
        if column.dtype.kind == "f":
            values = np.asarray(column).reshape(rows, -1)
            named = name == "observation" and dataset.features is not None
            finite = dataset.features.accepts(values) if named else is_finite32(values)
            yield (
                ~finite.all(axis=1),
                lambda row, name=name, values=values, finite=finite: (
                    f"the {name} is not finite {not_finite(dataset, values[row], finite[row])}; "
                    "repair or drop the episode"
                ),
            )
    yield (
        final & (dataset.reward != 0),
        lambda row: (
            f"reward {float(dataset.reward[row]):g} in the row of the final observation, where no "
            "decision is left; the reward of a decision stands in its own row"
        ),
    )
    unknown = np.zeros(rows, bool)
    # That of a fragment may be unknown, which NaN says.
    allowed = np.isfinite(dataset.episode_return) | (
        np.isnan(dataset.episode_return) & ~dataset.complete
    )
    unknown[dataset.offsets[:-1]] = ~allowed
    yield unknown, lambda row: "the episode's return is not finite"
