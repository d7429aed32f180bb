"""The options against the columns a log has: which column plays which role, and whether it can."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from rbve.data.features import Features
from rbve.data.logs.roles import ROLES, Kind, LogOptions, Roles
from rbve.data.source import Report
from rbve.registry import did_you_mean

# What Arrow, and Python beneath it, raise on files that are not what they claim.
DAMAGE = (pa.ArrowException, OSError, UnicodeError, OverflowError, MemoryError, EOFError)
# What data frames call a column of row numbers they add.
_INDICES = ("", "__index_level_0__")
_UNFIT = ("nested", "temporal", "binary", "large_binary", "fixed_size_binary")
# Names of columns that give the outcome away if they slip into the observation.
_TELLTALE = {
    "terminated": ("done", "terminal", "is_terminal"),
    "truncated": ("timeout",),
    "episode_return": ("return",),
    "next_observation": ("next_obs", "next_state"),
}


class Own(NamedTuple):
    """What a log written by this library says about itself."""

    actions: tuple[str, ...]
    observation: tuple[str, ...]  # columns, one per feature, or the one of arrays
    shape: tuple[int, ...]
    dtype: np.dtype
    features: Features | None
    provenance: dict[str, Any]


class Log:
    """What a file format has to offer; one that knows its types may leave out the last five."""

    path: Path
    format: str
    names: list[str]  # of columns, in the file's order
    types: dict[str, pa.DataType]  # of those columns whose type is known
    typed = True  # False: the file holds texts, whose types are known after the first pass
    notes: list[str]  # what was assumed
    own: Own | None = None
    shape: tuple[int, ...] | None = None  # of arrays, where the file says so
    total: int  # what position() reaches
    report: Report
    logs: "Sequence[Log]" = ()  # those that it consists of, one after another
    starts: Sequence[int] = ()  # their first rows, once they were read or if they are typed

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Rows of the columns, as texts where types are not settled yet."""
        raise NotImplementedError

    def position(self) -> int:
        raise NotImplementedError

    def begin(self, roles: Roles) -> None:
        """Before the first pass: what the columns are."""

    def follow(self, first: "Log") -> None:
        """Gather with another log of the same columns what texts hold."""

    def numbers(self, name: str, column: pa.Array, first: int) -> pa.Array | None:
        """In the first pass: a column from row `first` on as numbers, None once that fails."""
        return column

    def settle(self, report: Report) -> None:
        """After the first pass: types by what the columns hold and their roles need."""

    def cast(self, name: str, texts: pa.Array) -> pa.Array:
        """Texts of a column as its type."""
        return texts

    def lines_of(self, rows: Sequence[int]) -> list[int]:
        """Of text files: the lines where these rows, which rise, stand."""
        raise NotImplementedError


def is_array(kind: pa.DataType | None) -> bool:
    return isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType)


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()


def is_number(kind: pa.DataType) -> bool:
    whole_or_null = pa.types.is_integer(kind) or pa.types.is_null(kind)
    return whole_or_null or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def is_category(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_dictionary(kind)


def is_time(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) and not pa.types.is_interval(kind)


def is_mask(kind: pa.DataType) -> bool:
    return is_array(kind) and (is_number(kind.value_type) or pa.types.is_boolean(kind.value_type))


def bare(kind: pa.DataType) -> pa.DataType:
    """What a dictionary holds, or the type itself."""
    return bare(kind.value_type) if pa.types.is_dictionary(kind) else kind


def inner(kind: pa.DataType) -> pa.DataType:
    """What arrays, or arrays of arrays, hold."""
    return inner(kind.value_type) if is_array(kind) else kind


def flag(role: str) -> str:
    """The option of the command line that names the role's column."""
    return f"--{role.replace('_', '-')}"


class Resolver:
    """Finds the columns of the roles; `notes` say what was assumed."""

    def __init__(self, log: Log, options: LogOptions, report: Report) -> None:
        self.log, self.options, self.report = log, options, report
        self.notes: list[str] = []

    def roles(self) -> Roles:
        """The columns of every role; refuses missing ones and roles that exclude each other."""
        named = [name for name in self.log.names if name not in _INDICES]
        if twice := [name for name in named if named.count(name) > 1]:
            text = f"two columns are called {twice[0]!r}; rename one of them"
            self.report.fatal("duplicate column", text)
        many = ("observation", "mask")
        columns = {role: self._single(role) for role in ROLES if ROLES[role].kind not in many}
        resolved = {role: self._masks(role) for role in ("legal", "next_legal")}
        masks = {role: names for role, (names, _) in resolved.items()}
        following = self._next_observation()
        observation = self._observation([*chain(*columns.values(), *masks.values(), following)])
        for role, names in columns.items():
            if ROLES[role].hindsight and set(names) & set(observation):
                self.report.fatal(
                    "hindsight",
                    f"column {names[0]!r} is the {role.replace('_', ' ')}, which nobody knows "
                    "before deciding; leave it out of --observation",
                )
        if following and len(following) != len(observation):
            self.report.fatal(
                "missing column",
                f"{len(following)} columns of the next observation and {len(observation)} of the "
                f"observation ({', '.join(observation)}); name both in the same order",
            )
        columns |= {"observation": observation, "next_observation": following, **masks}
        columns["next_legal"] = masks["next_legal"] if masks["legal"] else ()
        return Roles(
            {role: columns[role] for role in ROLES},
            self._cut(columns),
            {role: suffixes for role, (_, suffixes) in resolved.items()},
        )

    def _single(self, role: str) -> tuple[str, ...]:
        option = getattr(self.options, role)
        name = role if option is None else option
        if name in self.log.names:
            return (name,)
        if ROLES[role].required:
            self.report.fatal("missing column", self._missing(name or role, f"pass --{role} NAME"))
        if option:
            self.report.fault("missing column", self._missing(option, f"correct {flag(role)}"))
        return ()

    def _missing(self, name: str, remedy: str) -> str:
        names = self.log.names
        known = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")
        text = f"no column {name!r}.{did_you_mean(name, names)} Columns: {known}; {remedy}"
        if len(names) == 1 and not self.log.typed:
            text += ", or --delimiter if another sign separates the fields"
        return text

    def _expand(self, role: str, patterns: tuple[str, ...], taken: list[str]) -> tuple[str, ...]:
        """Names and prefixes to columns, in their order; prefixes pass over taken columns."""
        columns: list[str] = []
        for pattern in patterns:
            matches = [pattern] if pattern in self.log.names else []
            if not matches and pattern.endswith("*"):
                matches = [name for name in self._starting(pattern[:-1]) if name not in taken]
            if not matches:
                self.report.fault("missing column", self._missing(pattern, f"correct {flag(role)}"))
            columns += matches
        return tuple(dict.fromkeys(columns))

    def _starting(self, prefix: str) -> tuple[str, ...]:
        return tuple(name for name in self.log.names if name.startswith(prefix))

    def _masks(self, role: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(columns; of a column per action their names beyond the common prefix)."""
        option = getattr(self.options, role)
        if option == "":
            return (), ()
        if (option or role) in self.log.names:
            return (option or role,), ()
        if option is not None:
            prefix, columns = option.removesuffix("*"), self._expand(role, (option,), [])
        else:
            prefix = f"{role}_"
            columns = self._starting(prefix)
            numbers = {name.removeprefix(prefix) for name in columns}
            by_name = self._starting(f"{role}:")
            if by_name or numbers != set(map(str, range(len(numbers)))):
                prefix, columns = f"{role}:", by_name
        alone = columns == (role,)
        return columns, () if alone else tuple(name.removeprefix(prefix) for name in columns)

    def _next_observation(self) -> tuple[str, ...]:
        patterns = self.options.next_observation
        if patterns:
            return () if patterns == ("",) else self._expand("next_observation", patterns, [])
        if "next_observation" in self.log.names:
            return ("next_observation",)
        return self._starting("next_observation_")

    def _observation(self, taken: list[str]) -> tuple[str, ...]:
        if self.log.own is not None:
            return self.log.own.observation
        patterns = self.options.observation
        names = self._expand("observation", patterns, taken) if patterns else self._rest(taken)
        if not names:
            text = "no column is left as observation; pass --observation NAME ..."
            self.report.fatal("missing column", text)
        arrays = [name for name in names if is_array(self.log.types.get(name))]
        if arrays and len(names) > 1:
            self.report.fatal(
                "mixed types",
                f"column {arrays[0]!r} holds arrays, which make an observation alone; pass "
                f"--observation {arrays[0]}",
            )
        return names

    def _rest(self, taken: list[str]) -> tuple[str, ...]:
        """Every column without another use."""
        if is_array(self.log.types.get("observation")):
            return ("observation",)
        rest = [name for name in self.log.names if name not in taken]
        if set(rest) & set(_INDICES):
            rest = [name for name in rest if name not in _INDICES]
            self.notes.append("left out: a column without a name, which data frames number rows by")
        types = {name: kind for name in rest if (kind := self.log.types.get(name)) is not None}
        unfit = [n for n in types if any(getattr(pa.types, f"is_{u}")(types[n]) for u in _UNFIT)]
        names = [name for name in rest if name not in unfit]
        if names:
            taking = ", ".join(names)
            self.notes.append(f"--observation not given: taking every other column, {taking}")
        for name, (role, telltale) in product(names, _TELLTALE.items()):
            if name.lower() in telltale and getattr(self.options, role) in (None, ()):
                self.notes.append(
                    f"column {name!r} is taken as part of the observation; if it tells how the "
                    f"decision came out, pass {flag(role)} {name}"
                )
        if unfit:
            self.notes.append(f"left out, being neither numbers nor categories: {', '.join(unfit)}")
        return tuple(names)

    def _cut(self, columns: dict[str, tuple[str, ...]]) -> Literal["ids", "flags", "rows", "each"]:
        if self.options.ends == "each":
            if columns["episode"]:
                self.report.fatal(
                    "missing column",
                    "--ends each makes every row an episode, and column "
                    f"{columns['episode'][0]!r} says otherwise; pass --episode '' to leave it "
                    "aside",
                )
            return "each"
        if columns["episode"]:
            return "ids"
        if columns["next_observation"]:
            known = columns["episode_return"]
            self.notes.append(
                "no episode column: each row is a transition of its own, without a reward-to-go"
                f"{'' if known else ' or a return (--episode-return NAME)'}; pass --episode NAME "
                "if rows belong together"
            )
            return "rows"
        if not columns["terminated"] and not columns["truncated"]:
            self.report.fatal(
                "missing column",
                "nothing says where episodes begin; pass --episode NAME, or --terminated NAME or "
                "--truncated NAME for a log in order, --next-observation NAME ... for lone "
                "transitions, or --ends each if every row stands alone. Columns: "
                f"{', '.join(self.log.names[:40])}",
            )
        return "flags"


def _is_word(kind: pa.DataType) -> bool:
    return is_number(kind) or is_category(kind)


# Types that may hold what is meant, and what to say of others. Values are checked row by row.
_FITS: dict[Kind, tuple[Callable[[Any], bool], str]] = {
    "id": (lambda kind: _is_word(kind) or is_time(kind), "one id in each row"),
    "time": (lambda kind: is_number(kind) or is_time(kind), "numbers or times"),
    "amount": (is_number, "numbers"),
    "flag": (_is_word, "0 and 1, or true and false"),
    "decision": (_is_word, "ids or names of actions"),
    "mask": (is_mask, "arrays of 0 and 1, or a prefix such as 'legal_*' instead"),
}


def refuse_types(log: Log, roles: Roles, options: LogOptions, report: Report) -> None:
    """Refuse columns whose types cannot hold what their roles need."""
    types = log.types
    for kind in _FITS:
        for role, column in roles.of_kind(kind):
            fits, needed = _FITS["flag" if roles.suffixes.get(role) else kind]
            if not fits(bare(types[column])):
                report.fatal(
                    "mixed types",
                    f"column {column!r} holds {types[column]}, and needs {needed}; convert it "
                    "or name another column",
                )
    array = is_array(types[roles.one("observation")])
    for _, name in roles.of_kind("observation"):
        held = inner(types[name])
        other = pa.types.is_boolean(held) if array else is_category(held)
        if is_array(types[name]) != array or not (is_number(held) or other):
            report.fatal(
                "mixed types",
                f"column {name!r} holds {types[name]}, which is no number, category or array of "
                "numbers as the observation needs; leave it out or convert it",
            )
    decisions = roles.decisions
    if not options.actions and len({is_number(types[name]) for name in decisions}) > 1:
        report.fatal(
            "mixed types",
            f"columns {', '.join(decisions)} hold numbers and names; declare the set with "
            "--actions if they belong together",
        )
    for name in () if array else options.categorical:
        if name not in roles["observation"]:
            report.fault(
                "missing column",
                f"--categorical names {name!r}, which is no column of the observation: "
                f"{', '.join(roles['observation'])}",
            )
