"""Batches of a log to NumPy columns, one entry per row."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.data.features import OTHER, is_finite32
from rbve.data.logs import values
from rbve.data.logs.resolve import Log
from rbve.data.logs.roles import ROLES, Chunk
from rbve.data.logs.survey import Reading
from rbve.data.source import Report

_Columns = tuple[np.ndarray, np.ndarray, np.ndarray]


class Chunks:
    """Reads batches, which come in order."""

    def __init__(self, reading: Reading, report: Report) -> None:
        self.reading, self.report = reading, report
        self.roles = reading.roles
        self._action_index = {name: index for index, name in enumerate(reading.actions)}
        self._mask_columns = {role: self._mask_order(role) for role in ("legal", "next_legal")}
        self._runs = values.Runs()
        self._before = (True, True)  # the row before ended an episode; was a final one

    def read(self, log: Log) -> Iterator[tuple[pa.RecordBatch, Chunk]]:
        """Batches and the columns of all roles in them."""
        rows = 0
        for batch in log.batches(self.roles.in_use):
            chunk: Chunk = {}
            with np.errstate(invalid="ignore", over="ignore"):
                for role in ROLES:
                    if self.roles[role]:
                        chunk |= getattr(self, f"_{ROLES[role].kind}")(role, batch, rows)
            if self.roles.cut == "flags":
                chunk["start"] = self._after_ends(chunk)
            elif self.roles.cut != "ids":
                chunk["start"] = np.ones(len(batch), bool)
            yield batch, chunk
            rows += len(batch)

    def _after_ends(self, chunk: Chunk) -> np.ndarray:
        """(N,) bool, which rows come after an end, and after the final row that may follow it."""
        final = ~chunk["decided"]
        flags = [chunk[name] for name in ("terminated", "truncated") if name in chunk]
        ended = np.any([final, *flags], axis=0)
        after_end = np.append(self._before[0], ended[:-1])
        after_final = np.append(self._before[1], final[:-1])
        self._before = bool(ended[-1]), bool(final[-1])
        return after_end & (~final | after_final)

    # What the columns of a role become, by its kind

    def _id(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        name = self.roles.one(role)
        ids = values.comparable(batch.column(name))
        text = f"column {name!r} is empty; every row needs its episode's id"
        self.report.rows("empty episode id", ~values.present(ids), first, text)
        return {"start": self._runs.starts(ids)}

    def _time(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        times, known = values.numbers(batch.column(self.roles.one(role)))
        return {role: times, "timed": known}

    def _amount(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        cells, known = values.numbers(batch.column(self.roles.one(role)))
        amounts = np.where(known, cells.astype(np.float64), np.nan)
        return {role: amounts} | ({"paid": ~np.isnan(amounts)} if role == "reward" else {})

    def _flag(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        column = batch.column(self.roles.one(role))
        on, known, wrong = values.flags(column)
        self._cells("bad flag", wrong, first, column, role, "; a flag is 0 or 1")
        return {role: np.where(known, on, ROLES[role].empty)}

    def _observation(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        before = "next_" if role == "next_observation" else ""
        read = self._arrays if self.reading.features is None else self._features
        columns = read(batch, self.roles[role])
        names = (f"{before}{name}" for name in ("obs", "fault", "seen"))
        return dict(zip(names, columns, strict=True))

    def _arrays(self, batch: pa.RecordBatch, names: tuple[str, ...]) -> _Columns:
        """(values, 0 where one is at fault, else −1; whether anything was observed)."""
        column = values.plain(batch.column(names[0]))
        if values.is_array(column.type):
            obs, seen, wrong = values.arrays(column, self.reading.shape, self.reading.dtype)
        else:  # observations of one number
            obs, seen = values.numbers(column)[0].astype(self.reading.dtype), values.present(column)
            wrong = np.zeros(len(column), bool)
        if obs.dtype.kind == "f":
            wrong |= ~is_finite32(obs.reshape(len(obs), -1)).all(axis=1)
        return obs, np.where(wrong | ~seen, 0, -1).astype(np.int32), seen

    def _features(self, batch: pa.RecordBatch, names: tuple[str, ...]) -> _Columns:
        """(values, index of a column at fault or −1, whether anything was observed)."""
        fault = np.full(len(batch), -1, np.int32)
        obs = np.empty((len(batch), len(names)), self.reading.dtype)
        seen = np.zeros(len(batch), bool)
        features = self.reading.features.columns if self.reading.features is not None else ()
        for index, (name, feature) in enumerate(zip(names, features, strict=True)):
            column = batch.column(name)
            if feature.kind == "category":
                codes = {category: code for code, category in enumerate(feature.categories)}
                other = codes.get(OTHER, -1) if feature.other else -1
                cells, known = values.codes(column, codes, other)
                unread = cells < 0
                good = known & ~unread
            else:
                cells, known = values.numbers(column)
                good = known & is_finite32(cells) if cells.dtype.kind == "f" else known
                unread = ~known
            obs[:, index] = cells
            if not good.all():
                wrong = ~good if feature.missing == "error" else ~good & known
                fault[wrong & (fault < 0)] = index
                if obs.dtype.kind == "f":
                    obs[~known | unread, index] = np.nan
            seen |= known
        return obs, fault, seen

    def _decision(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        """Ids, −1 where there is none; of the action also which cells are not empty."""
        column, actions = batch.column(self.roles.one(role)), self.reading.actions
        if self.reading.by_id:
            cells, known = values.numbers(column)
            good = known & (np.floor(cells) == cells) & (cells >= 0) & (cells < len(actions))
            ids = np.where(good, cells, -1).astype(np.int32)
            kind, most = "bad action", len(actions) - 1
            needs = f"; an action is a whole number from 0 to {most}"
            needs += ", and the cell of a final row is empty"
        else:
            ids, known = values.codes(column, self._action_index)
            kind, needs = "unknown action", f", which is not in the action set ({_listed(actions)})"
            needs += "; correct it or declare it in --actions"
        self._cells(kind, known & (ids < 0), first, column, role, needs)
        return {role: ids, "decided": known} if role == "action" else {role: ids}

    def _mask(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        """(N, actions) legal actions, all where a row says nothing; which rows say something."""
        names, width = self.roles[role], len(self.reading.actions)
        if len(names) == 1 and values.is_array(batch.column(names[0]).type):
            column = values.plain(batch.column(names[0]))
            cells, known, odd = values.arrays(column, (width,), np.dtype(np.float64))
            on = cells == 1
            lengths, _ = values.numbers(pc.list_value_length(column))
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
            wrong = (odd | known & ~(on | (cells == 0)).all(axis=1)) & (lengths == width)
        else:  # one flag column per action; rows with any gap count as empty
            flags = [values.flags(batch.column(name)) for name in self._mask_columns[role]]
            on, every, any_wrong = (np.stack(each, axis=1) for each in zip(*flags, strict=True))
            known, wrong = np.all(every, axis=1), np.any(any_wrong, axis=1)
        text = "the mask of legal actions is not all 0 and 1"
        self.report.rows("bad mask", wrong, first, text)
        on[~known | wrong] = True
        return {role: on, f"{role}_known": known}

    def _cells(
        self, kind: str, wrong: np.ndarray, first: int, column: pa.Array, role: str, needs: str
    ) -> None:
        begin = f"column {self.roles.one(role)!r} holds "
        self.report.rows(kind, wrong, first, lambda row: f"{begin}{shown(column, row)}{needs}")

    def _mask_order(self, role: str) -> list[str]:
        """The mask column of each action: by name where names agree, else in order."""
        names, suffixes = self.roles[role], self.roles.suffixes[role]
        actions = self.reading.actions
        if not suffixes:
            return []
        if set(actions) <= set(suffixes):
            return [names[suffixes.index(action)] for action in actions]
        if len(names) != len(actions):
            self.report.fatal(
                "mask width",
                f"{len(names)} columns of legal actions ({_listed(names)}) and {len(actions)} "
                f"actions ({_listed(actions)}); masks have one column per action",
            )
        return list(names)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def shown(column: pa.Array, row: int) -> str:
    """A cell as a message shows it."""
    try:
        text = repr(column[row].as_py())
    except ValueError:  # times Python has no type for
        text = str(column[row : row + 1].cast(pa.string())[0])
    return text if len(text) <= 40 else f"{text[:40]}..."
