"""The options against the columns a log has: which column plays which role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from rbve.data.logs.log import Log, Report
from rbve.data.logs.options import Options
from rbve.registry import did_you_mean

# Roles of one column each, named as the options are.
SINGLE = (
    "episode",
    "time",
    "action",
    "reward",
    "terminated",
    "truncated",
    "propensity",
    "executed",
    "next_action",
    "complete",
    "episode_return",
)
# What a policy could not know when it decides, so no part of an observation.
HINDSIGHT = (
    "action",
    "reward",
    "terminated",
    "truncated",
    "executed",
    "next_action",
    "episode_return",
)
# What data frames call a column of row numbers they add.
INDICES = ("", "__index_level_0__")
# Names of columns that give the outcome away if they slip into the observation.
TELLTALE = {
    "done": "terminated",
    "terminal": "terminated",
    "is_terminal": "terminated",
    "timeout": "truncated",
    "return": "episode_return",
    "next_obs": "next_observation",
    "next_state": "next_observation",
}


@dataclass(frozen=True)
class Roles:
    action: str
    reward: str
    observation: tuple[str, ...]
    cut: Literal["ids", "flags", "rows", "each"]  # what says where episodes begin
    next_observation: tuple[str, ...] = ()
    legal: tuple[str, ...] = ()
    next_legal: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()  # of the legal columns, beyond their common prefix
    next_suffixes: tuple[str, ...] = ()
    episode: str | None = None
    time: str | None = None
    terminated: str | None = None
    truncated: str | None = None
    propensity: str | None = None
    executed: str | None = None
    next_action: str | None = None
    complete: str | None = None
    episode_return: str | None = None

    @property
    def columns(self) -> list[str]:
        """All columns in use."""
        lists = (self.observation, self.next_observation, self.legal, self.next_legal)
        single = [column for name in SINGLE if (column := getattr(self, name)) is not None]
        return list(dict.fromkeys([*single, *(column for each in lists for column in each)]))

    @property
    def decisions(self) -> list[str]:
        """The columns that hold actions."""
        return [name for name in (self.action, self.executed, self.next_action) if name]


class Resolver:
    def __init__(self, log: Log, options: Options, report: Report) -> None:
        self.log, self.options, self.report = log, options, report
        self.notes: list[str] = []

    def roles(self) -> Roles:
        self.refuse_duplicates()
        single = {name: self.single(name) for name in SINGLE}
        action, reward = single.pop("action"), single.pop("reward")
        if action is None or reward is None:
            raise ValueError(f"{self.log.path}: a log needs a column of actions and one of rewards")
        legal = self.masks("legal")
        next_legal = self.masks("next_legal")
        next_observation = self.next_observation()
        taken = [action, reward, *filter(None, single.values()), *legal, *next_legal]
        observation = self.observation([*taken, *next_observation])
        for name in ("action", "reward", *single):
            column = {"action": action, "reward": reward, **single}[name]
            if name in HINDSIGHT and column in observation:
                self.report.fatal(
                    "hindsight",
                    f"column {column!r} is the {name.replace('_', ' ')}, which nobody knows before "
                    "deciding; leave it out of --observation",
                )
        return Roles(
            action=action,
            reward=reward,
            observation=observation,
            next_observation=self.fitting(next_observation, observation),
            legal=legal,
            next_legal=next_legal if legal else (),
            suffixes=self.suffixes("legal", legal),
            next_suffixes=self.suffixes("next_legal", next_legal),
            cut=self.cut(single, next_observation),
            **single,
        )

    def refuse_duplicates(self) -> None:
        seen: set[str] = set()
        for name in self.log.names:
            if name in seen and name not in INDICES:
                self.report.fatal(
                    "duplicate column", f"two columns are called {name!r}; rename one of them"
                )
            seen.add(name)

    def single(self, role: str) -> str | None:
        given = getattr(self.options, role)
        name = role if given is None else given
        if name in self.log.names:
            return name
        if role in ("action", "reward"):
            self.missing(name or role, f"pass --{role} NAME", fatal=True)
        if given:
            self.missing(given, f"correct --{role.replace('_', '-')}")
        return None

    def missing(self, name: str, remedy: str, fatal: bool = False) -> None:
        names = self.log.names
        known = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")
        text = f"no column {name!r}.{did_you_mean(name, names)} Columns: {known}; {remedy}"
        if len(names) == 1 and not self.log.typed:
            text += ", or --delimiter if another sign separates the fields"
        if fatal:
            self.report.fatal("missing column", text)
        self.report.fault("missing column", text)

    def expand(self, role: str, wanted: tuple[str, ...], taken: list[str]) -> tuple[str, ...]:
        """Names and prefixes to columns, in the order given; prefixes pass over taken columns."""
        found: list[str] = []
        for name in wanted:
            if name in self.log.names:
                found.append(name)
                continue
            prefix = name.removesuffix("*")
            matches = [
                column
                for column in self.log.names
                if name.endswith("*") and column.startswith(prefix) and column not in taken
            ]
            if not matches:
                self.missing(name, f"correct --{role.replace('_', '-')}")
            found += matches
        return tuple(dict.fromkeys(found))

    def masks(self, role: str) -> tuple[str, ...]:
        given = getattr(self.options, role)
        if given == "":
            return ()
        if given is not None:
            return self.expand(role, (given,), [])
        if role in self.log.names:
            return (role,)
        by_name = [name for name in self.log.names if name.startswith(f"{role}:")]
        numbered = [name for name in self.log.names if name.startswith(f"{role}_")]
        numbers = {name.removeprefix(f"{role}_") for name in numbered}
        if not by_name and numbers == set(map(str, range(len(numbers)))):
            return tuple(numbered)
        return tuple(by_name)

    def suffixes(self, role: str, columns: tuple[str, ...]) -> tuple[str, ...]:
        if not columns or columns == (role,) or columns == (getattr(self.options, role),):
            return ()
        given = getattr(self.options, role)
        prefix = f"{role}:" if columns[0].startswith(f"{role}:") else f"{role}_"
        if given is not None:
            prefix = given.removesuffix("*")
        return tuple(column.removeprefix(prefix) for column in columns)

    def next_observation(self) -> tuple[str, ...]:
        wanted = self.options.next_observation
        if wanted == ("",):
            return ()
        if wanted:
            return self.expand("next_observation", wanted, [])
        if "next_observation" in self.log.names:
            return ("next_observation",)
        return tuple(name for name in self.log.names if name.startswith("next_observation_"))

    def observation(self, taken: list[str]) -> tuple[str, ...]:
        if self.log.own is not None:
            return self.log.own.observation
        wanted = self.options.observation
        found = self.expand("observation", wanted, taken) if wanted else self.rest(taken)
        if not found:
            self.report.fatal(
                "missing column", "no column is left as observation; pass --observation NAME ..."
            )
        arrays = [name for name in found if is_array(self.log.types.get(name))]
        if arrays and len(found) > 1:
            self.report.fatal(
                "mixed types",
                f"column {arrays[0]!r} holds arrays, which make an observation alone; pass "
                f"--observation {arrays[0]}",
            )
        return found

    def rest(self, taken: list[str]) -> tuple[str, ...]:
        if is_array(self.log.types.get("observation")):
            return ("observation",)
        rest = [name for name in self.log.names if name not in taken]
        if set(rest) & set(INDICES):
            rest = [name for name in rest if name not in INDICES]
            self.notes.append("left out: a column without a name, which data frames number rows by")
        unfit = [name for name in rest if not fits(self.log.types.get(name))]
        found = [name for name in rest if name not in unfit]
        if found:
            self.notes.append(
                f"--observation not given: taking every other column, {', '.join(found)}"
            )
        for name in found:
            if (role := TELLTALE.get(name.lower())) and getattr(self.options, role) in (None, ()):
                self.notes.append(
                    f"column {name!r} is taken as part of the observation; if it tells how the "
                    f"decision came out, pass --{role.replace('_', '-')} {name}"
                )
        if unfit:
            self.notes.append(f"left out, being neither numbers nor categories: {', '.join(unfit)}")
        return tuple(found)

    def fitting(self, following: tuple[str, ...], observation: tuple[str, ...]) -> tuple[str, ...]:
        if following and len(following) != len(observation):
            self.report.fatal(
                "missing column",
                f"{len(following)} columns of the next observation and {len(observation)} of the "
                f"observation ({', '.join(observation)}); name both in the same order",
            )
        return following

    def cut(
        self, single: dict[str, str | None], following: tuple[str, ...]
    ) -> Literal["ids", "flags", "rows", "each"]:
        if self.options.ends == "each":
            if single["episode"] is not None:
                self.report.fatal(
                    "missing column",
                    "--ends each makes every row an episode, and column "
                    f"{single['episode']!r} says otherwise; pass --episode '' to leave it aside",
                )
            return "each"
        if single["episode"] is not None:
            return "ids"
        if following:
            known = single["episode_return"] is not None
            self.notes.append(
                "no episode column: each row is a transition of its own, without a reward-to-go"
                f"{'' if known else ' or a return (--episode-return NAME)'}; pass --episode NAME "
                "if rows belong together"
            )
            return "rows"
        if single["terminated"] is None and single["truncated"] is None:
            self.report.fatal(
                "missing column",
                "nothing says where episodes begin; pass --episode NAME, or --terminated NAME or "
                "--truncated NAME for a log in order, --next-observation NAME ... for lone "
                "transitions, or --ends each if every row stands alone. Columns: "
                f"{', '.join(self.log.names[:40])}",
            )
        return "flags"


def is_array(kind: pa.DataType | None) -> bool:
    return kind is not None and (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def fits(kind: pa.DataType | None) -> bool:
    """Whether a column can be one number or category of an observation."""
    return kind is None or not (
        pa.types.is_nested(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
