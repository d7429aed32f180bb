"""What a user says about a log: which column is what, and how values are read.

A new role is one more field of LogOptions, which is its flag too. Its kind says which types fit and
how cells are read; `accepts` checks the values of decisions, `enter` puts them into the Dataset.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import numpy as np

from rbve.data.episode import NO_ACTION
from rbve.data.features import Features, Missing

# The columns of a chunk of rows, by name: those of roles, and
#   obs, fault (index of the observation column that is not finite, −1 if all are), seen (the row
#   holds an observation at all), the same of the next observation as next_obs, next_fault,
#   next_seen; decided, paid and timed (the cell of action, reward, time is not empty);
#   legal_known (the row has a mask); start (an episode begins).
Chunk = dict[str, np.ndarray]
_Ends = Literal["terminated", "truncated", "each"]
_EXAMPLE = datetime(2024, 5, 31, 14, 30, tzinfo=UTC)
Kind = Literal["id", "time", "decision", "amount", "flag", "mask", "observation"]


@dataclass
class Assembly:
    """Rows of whole episodes on their way into a Dataset of R rows and E episodes."""

    table: Chunk  # the log's rows
    columns: Chunk  # the dataset's rows, column by column as roles enter
    source: np.ndarray  # (R,) the log's row that each of the dataset's rows comes from
    last: np.ndarray  # (E,) the dataset's final rows
    final: np.ndarray  # (E,) bool, the log has a row for it
    ends: np.ndarray  # (E,) the log's rows of last decisions
    over: np.ndarray  # (E,) bool, no action follows
    known: np.ndarray  # (E,) bool, the final observation is known
    own: bool  # the log was written by this library

    def __post_init__(self) -> None:
        self.added = self.last[~self.final]  # the dataset's rows that the log does not have
        self.before_added = self.ends[~self.final]  # the log's rows of the decisions before them


def _enter_observation(rows: Assembly, name: str) -> None:
    rows.columns["obs"] = obs = rows.table["obs"][rows.source]
    unseen = rows.last[rows.final & ~rows.known]
    obs[unseen] = obs[unseen - 1]
    if "next_obs" in rows.table:
        seen = rows.table["next_seen"][rows.before_added]
        obs[rows.added[seen]] = rows.table["next_obs"][rows.before_added[seen]]
        rows.known[~rows.final] = seen


def _enter_decision(rows: Assembly, name: str) -> None:
    rows.columns[name] = ids = rows.table[name][rows.source]
    ids[rows.added] = ids[rows.last[rows.over]] = NO_ACTION
    if name == "action" and "next_action" in rows.table:
        # After an episode that is over no action follows; after a fragment one may.
        following = rows.table["next_action"][rows.before_added]
        ids[rows.added] = np.where(rows.over[~rows.final], NO_ACTION, following)


def _enter_reward(rows: Assembly, name: str) -> None:
    rows.columns[name] = reward = rows.table[name].astype(np.float32)[rows.source]
    reward[rows.last] = 0


def _enter_propensity(rows: Assembly, name: str) -> None:
    values = rows.table[name][rows.source]
    if not rows.own:  # logs leave the cell of a final row empty
        values[rows.last] = np.nan_to_num(values[rows.last], nan=1.0)
    rows.columns[name] = values.astype(np.float32)


def _enter_legal(rows: Assembly, name: str) -> None:
    rows.columns[name] = legal = rows.table[name][rows.source]
    if "next_obs" in rows.table:
        legal[rows.added] = True
    if "next_legal" in rows.table:
        legal[rows.added] = rows.table["next_legal"][rows.before_added]


@dataclass(frozen=True)
class Role:
    """What a column is to a log."""

    kind: Kind
    hindsight: bool = False  # nobody knows it before deciding, so it is no part of an observation
    required: bool = False
    empty: bool = False  # of a flag: what an empty cell says
    accepts: Callable[[np.ndarray], np.ndarray] | None = None  # which values a decision may have
    fault: str = ""  # kind of fault where it has another
    needs: str = ""  # what to say then, after the value
    in_finals: bool = False  # rows without a decision are checked too
    enter: Callable[[Assembly, str], None] | None = None  # how it enters the Dataset


def _role(kind: Kind, default: Any = None, **facts: Any) -> Any:
    return field(default=default, metadata={"role": Role(kind, **facts)})


@dataclass(frozen=True)
class LogOptions:
    """Columns by name. Left out, a column of the option's own name is taken where there is one.

    An empty name says that the log has no such column.
    """

    # Column of episode ids.
    episode: str | None = _role("id")
    # Column that rises within an episode; orders rows of episodes that do not stand together.
    time: str | None = _role("time")
    # Column of decisions: ids or names; empty in a final row.
    action: str | None = _role("decision", hindsight=True, required=True, enter=_enter_decision)
    # Column of rewards, each in the row of its decision.
    reward: str | None = _role("amount", hindsight=True, required=True, enter=_enter_reward)
    # Columns the decision saw: names, prefixes ("obs_*"), or one column of arrays. Default: every
    # column without another use.
    observation: tuple[str, ...] = _role("observation", (), enter=_enter_observation)
    # Columns of what came after the decision, in the order of --observation. Without episodes, each
    # row is then a transition of its own.
    next_observation: tuple[str, ...] = _role("observation", ())
    # Allowed actions: a column of arrays of 0/1, or a prefix ("legal_*") with a column per action.
    legal: str | None = _role("mask", enter=_enter_legal)
    # Allowed actions after this decision, in lone transitions.
    next_legal: str | None = _role("mask")
    # Flag column: the episode truly ended with this decision.
    terminated: str | None = _role("flag", hindsight=True)
    # Flag column: the record stops here, the episode went on.
    truncated: str | None = _role("flag", hindsight=True)
    # Column: probability with which the logged action was chosen.
    propensity: str | None = _role(
        "amount",
        accepts=lambda values: (values > 0) & (values <= 1),
        fault="bad propensity",
        needs="the probability of an action that was taken lies above 0 and is at most 1",
        enter=_enter_propensity,
    )
    # Column: the action carried out, where it may differ.
    executed: str | None = _role("decision", hindsight=True, enter=_enter_decision)
    # Column: the decision after this one, in lone transitions.
    next_action: str | None = _role("decision", hindsight=True)
    # Flag column: 0 marks a piece cut out of a longer episode.
    complete: str | None = _role("flag", empty=True)
    # Column: sum of rewards of the whole episode.
    episode_return: str | None = _role(
        "amount",
        hindsight=True,
        accepts=lambda values: ~np.isinf(values),
        fault="bad return",
        needs="a return is a finite number",
        in_finals=True,
    )

    categorical: tuple[str, ...] = ()  # columns of numbers that are codes, not quantities
    actions: tuple[str, ...] = ()  # the action set, in the order of its ids; default: what occurs
    # How episodes end in a log without end flags (default: terminated). each: every row is an
    # episode of one decision, as in a bandit's log.
    ends: _Ends | None = None
    # Of a CSV: what separates fields (a sign, or "tab"). Default: the one of , ; | and tab that the
    # header and the first rows agree on.
    delimiter: str | None = None
    decimal: str | None = None  # of a CSV: the sign before decimals, "." (default) or ","
    # Of a CSV: how --time is written, as in "%d.%m.%Y %H:%M". Default: numbers, or ISO 8601 as in
    # 2024-05-31 14:00.
    time_format: str | None = None
    # Empty cells of the observation, NA and NaN. error: refused. mean: a number counts as its
    # column's mean, a category as none of its levels. indicator: so, and the network is told by one
    # more input for each column with gaps. The policy does the same.
    missing: Missing = "error"
    # Categories in fewer rows than this become one, "(other)", and so do those a policy meets that
    # are not in the data. 0: none do, and a policy refuses them.
    rare: int = 0
    clip: float = 10.0  # deviations at which standardised numbers are cut; inf: they are not

    def __post_init__(self) -> None:
        ends = get_args(_Ends)
        sign = "be one sign such as ';', or 'tab', and neither a quote nor a line break"
        times = self.time_format is None or _reads_times(self.time_format)
        example = "'%d.%m.%Y %H:%M' (day, month, year, hour, minute)"
        for name, fits, needs in (
            ("ends", self.ends in (None, *ends), "be 'terminated', 'truncated' or 'each'"),
            ("missing", self.missing in get_args(Missing), "be 'error', 'mean' or 'indicator'"),
            ("rare", self.rare >= 0, "be 0 or a number of rows"),
            ("clip", self.clip > 0, "be a positive number of deviations"),
            ("decimal", self.decimal in (None, ".", ","), "be '.' or ','"),
            ("delimiter", self.delimiter is None or self.sign, sign),
            ("time_format", times, f"say how times are written, as in {example}"),
        ):
            if not fits:
                raise ValueError(f"{name} must {needs}; got {getattr(self, name)!r}")
        if len(set(self.actions)) != len(self.actions):
            raise ValueError(f"actions must be different names; got {', '.join(self.actions)}")
        if self.sign is not None and self.sign == self.decimal:
            raise ValueError(f"delimiter and decimal cannot both be {self.decimal!r}")

    @property
    def sign(self) -> str | None:
        """The delimiter itself; None where none is named, or no single sign."""
        sign = {"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter or "")
        return sign if len(sign) == 1 and sign.isascii() and sign not in '"\r\n\0' else None

    @property
    def unflagged_ends(self) -> Literal["terminated", "truncated"]:
        """What episodes without an end flag count as."""
        return "truncated" if self.ends == "truncated" else "terminated"


def _reads_times(text: str) -> bool:
    try:
        datetime.strptime(_EXAMPLE.strftime(text), text)
    except ValueError:
        return False
    return "%" in text.replace("%%", "")


ROLES: dict[str, Role] = {
    each.name: each.metadata["role"] for each in fields(LogOptions) if "role" in each.metadata
}


@dataclass(frozen=True)
class Roles:
    """The columns of one log by role."""

    columns_of: dict[str, tuple[str, ...]]  # of each role; empty where the log has none
    cut: Literal["ids", "flags", "rows", "each"]  # what says where episodes begin
    # Of masks with a column per action: the columns' names beyond their common prefix, by role.
    suffixes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __getitem__(self, role: str) -> tuple[str, ...]:
        return self.columns_of[role]

    def one(self, role: str) -> str:
        return self.columns_of[role][0]

    def of_kind(self, *kinds: Kind) -> Iterator[tuple[str, str]]:
        """(role, column) of every column of these kinds."""
        for role, columns in self.columns_of.items():
            if ROLES[role].kind in kinds:
                yield from ((role, column) for column in columns)

    @property
    def in_use(self) -> list[str]:
        """All columns, those of roles with one column first."""
        single = [name for _, name in self.of_kind("id", "time", "decision", "amount", "flag")]
        many = [name for _, name in self.of_kind("observation", "mask")]
        return list(dict.fromkeys([*single, *many]))

    @property
    def decisions(self) -> list[str]:
        return [name for _, name in self.of_kind("decision")]

    def record(self) -> dict[str, Any]:
        """Roles and their columns for the provenance: what every log has first, lists next."""
        order = ("action", "reward", "observation", "next_observation", "legal", "next_legal")
        return {
            role: list(columns) if ROLES[role].kind in ("observation", "mask") else columns[0]
            for role in dict.fromkeys([*order, *ROLES])
            if (columns := self.columns_of[role])
        }


@dataclass(frozen=True)
class Reading:
    """How the columns of a log become those of a Dataset."""

    roles: Roles
    options: LogOptions
    actions: tuple[str, ...]
    by_id: bool  # actions are their ids, names "0", "1", ...
    shape: tuple[int, ...]
    dtype: np.dtype
    features: Features | None  # None: observations are arrays
    notes: list[str]
    own: bool = False  # the log was written by this library, which says what it holds
