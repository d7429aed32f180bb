"""Batches of a log to NumPy columns, one entry per row of the file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rbve.data.features import OTHER, is_finite32
from rbve.data.logs import values
from rbve.data.logs.log import Report
from rbve.data.logs.roles import is_array
from rbve.data.logs.survey import Plan

# The columns of a chunk of rows, by name:
#   obs, fault (index of the observation column that is not finite, −1 if all are), seen (the row
#   holds an observation at all), action, decided (its cell is not empty), reward, paid (its cell
#   is not empty), and, where the log has them, the other roles by their names.
Chunk = dict[str, np.ndarray]


class Columns:
    def __init__(self, plan: Plan, report: Report) -> None:
        self.plan, self.report = plan, report
        self.action_index = {name: index for index, name in enumerate(plan.actions)}
        roles = plan.roles
        self.orders = {
            roles.legal: mask_order(plan.actions, roles.legal, roles.suffixes, report),
            roles.next_legal: mask_order(
                plan.actions, roles.next_legal, roles.next_suffixes, report
            ),
        }

    def chunk(self, batch: pa.RecordBatch, first: int) -> Chunk:
        """`first` is the number of the batch's first row."""
        with np.errstate(invalid="ignore", over="ignore"):
            return self._chunk(batch, first)

    def _chunk(self, batch: pa.RecordBatch, first: int) -> Chunk:
        roles = self.plan.roles
        chunk: Chunk = {}
        chunk["obs"], chunk["fault"], chunk["seen"] = self.observation(batch, roles.observation)
        if roles.next_observation:
            after = self.observation(batch, roles.next_observation)
            chunk["next_obs"], chunk["next_fault"], chunk["next_seen"] = after
        chunk["action"], chunk["decided"] = self.actions(batch, roles.action, first)
        for role in ("executed", "next_action"):
            if (name := getattr(roles, role)) is not None:
                chunk[role] = self.actions(batch, name, first)[0]
        chunk["reward"], chunk["paid"] = self.floats(batch, roles.reward)
        for role in ("propensity", "episode_return"):
            if (name := getattr(roles, role)) is not None:
                chunk[role] = self.floats(batch, name)[0]
        if roles.time is not None:
            times, known = values.numbers(batch.column(roles.time))
            chunk["time"] = times
            chunk["timed"] = known if times.dtype.kind != "f" else known & ~np.isnan(times)
        for role, empty in (("terminated", False), ("truncated", False), ("complete", True)):
            if (name := getattr(roles, role)) is not None:
                chunk[role] = self.flags(batch, name, first, empty)
        for role, names in (("legal", roles.legal), ("next_legal", roles.next_legal)):
            if names:
                chunk[role], chunk[f"{role}_known"] = self.masks(batch, names, first)
        return chunk

    def observation(
        self, batch: pa.RecordBatch, names: tuple[str, ...]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(values, index of a column at fault or −1, whether anything was observed)."""
        plan = self.plan
        fault = np.full(len(batch), -1, np.int32)
        if plan.features is None:
            column = values.plain(batch.column(names[0]))
            if not is_array(column.type):  # observations of one number
                found, seen = values.numbers(column)
                obs, wrong = found.astype(plan.dtype), np.zeros(len(batch), bool)
            else:
                obs, seen, wrong = values.arrays(column, plan.shape, plan.dtype)
            if obs.dtype.kind == "f":
                wrong |= ~is_finite32(obs.reshape(len(obs), -1)).all(axis=1)
            fault[wrong | ~seen] = 0
            return obs, fault, seen
        obs = np.empty((len(batch), len(names)), plan.dtype)
        seen = np.zeros(len(batch), bool)
        for index, (name, feature) in enumerate(zip(names, plan.features.columns, strict=True)):
            column = batch.column(name)
            if feature.kind == "category":
                codes = {category: code for code, category in enumerate(feature.categories)}
                found, known = values.codes(
                    column, codes, codes.get(OTHER, -1) if feature.other else -1
                )
                good = known & (found >= 0)
            else:
                found, known = values.numbers(column)
                good = known & is_finite32(found) if found.dtype.kind == "f" else known
                known &= ~np.isnan(found) if found.dtype.kind == "f" else True
            obs[:, index] = found
            if not good.all():
                wrong = ~good if feature.missing == "error" else ~good & known
                fault[wrong & (fault < 0)] = index
                if obs.dtype.kind == "f":
                    obs[~known | (found < 0 if feature.kind == "category" else False), index] = (
                        np.nan
                    )
            seen |= known
        return obs, fault, seen

    def actions(
        self, batch: pa.RecordBatch, name: str, first: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """(ids, −1 where there is none; which cells are not empty)."""
        column = batch.column(name)
        if not self.plan.by_id:
            ids, known = values.codes(column, self.action_index)
            self.report.rows(
                "unknown action",
                known & (ids < 0),
                first,
                lambda row: (
                    f"column {name!r} holds {shown(column, row)}, which is not in the action set "
                    f"({listed(self.plan.actions)}); correct it or declare it in --actions"
                ),
            )
            return ids, known
        found, known = values.numbers(column)
        if found.dtype.kind == "f":
            known &= ~np.isnan(found)
        whole = np.floor(found) == found
        good = known & whole & (found >= 0) & (found < len(self.plan.actions))
        self.report.rows(
            "bad action",
            known & ~good,
            first,
            lambda row: (
                f"column {name!r} holds {shown(column, row)}; an action is a whole number from 0 "
                f"to {len(self.plan.actions) - 1}, and the cell of a final row is empty"
            ),
        )
        return np.where(good, found, -1).astype(np.int32), known

    def floats(self, batch: pa.RecordBatch, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(float64 values, NaN in empty cells; which cells are not empty)."""
        found, known = values.numbers(batch.column(name))
        result = found.astype(np.float64)
        result[~known] = np.nan
        return result, known & ~np.isnan(result)

    def flags(self, batch: pa.RecordBatch, name: str, first: int, empty: bool) -> np.ndarray:
        column = batch.column(name)
        on, known, wrong = values.flags(column)
        self.report.rows(
            "bad flag",
            wrong,
            first,
            lambda row: f"column {name!r} holds {shown(column, row)}; a flag is 0 or 1",
        )
        return np.where(known, on, empty)

    def masks(
        self, batch: pa.RecordBatch, names: tuple[str, ...], first: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """((N, actions) legal actions, all where a row says nothing; which rows say something)."""
        width = len(self.plan.actions)
        if len(names) == 1 and is_array(batch.column(names[0]).type):
            column = values.plain(batch.column(names[0]))
            on, known, wrong = values.mask_arrays(column, width)
            lengths = values.lengths(column)
            self.report.rows(
                "mask width",
                known & (lengths != width),
                first,
                lambda row: (
                    f"column {names[0]!r} holds a mask of {lengths[row]} and there are {width} "
                    "actions; masks have one entry per action"
                ),
            )
            on[lengths != width] = True
            wrong &= lengths == width
        else:
            on, known, wrong = values.mask_columns(
                [batch.column(name) for name in self.orders[names]]
            )
        self.report.rows(
            "bad mask", wrong, first, lambda row: "the mask of legal actions is not all 0 and 1"
        )
        on[~known | wrong] = True
        return on, known


def mask_order(
    actions: tuple[str, ...], names: tuple[str, ...], suffixes: tuple[str, ...], report: Report
) -> list[str]:
    """The mask column of each action: by name where names agree, else in order."""
    if not suffixes:
        return []
    if set(actions) <= set(suffixes):
        return [names[suffixes.index(action)] for action in actions]
    if len(names) != len(actions):
        report.fatal(
            "mask width",
            f"{len(names)} columns of legal actions ({listed(names)}) and {len(actions)} actions "
            f"({listed(actions)}); masks have one column per action",
        )
    return list(names)


def listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def shown(column: pa.Array, row: int) -> str:
    try:
        text = repr(column[row].as_py())
    except ValueError:  # times Python has no type for
        text = str(column[row : row + 1].cast(pa.string())[0])
    return text if len(text) <= 40 else f"{text[:40]}..."
