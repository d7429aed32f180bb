"""Decisions by a program: what a saved or exported policy does, with NumPy alone."""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rbve.data.features import Features
from rbve.runtime.encode import Encoder
from rbve.runtime.inputs import is_named, read_legal, read_rows
from rbve.runtime.outcome import Rules, choose, weigh
from rbve.runtime.session import Session

_AT_ONCE = 1 << 22  # numbers of the observations that are computed together
_ROWS = 8192  # and rows
_GREEDY = Rules()
Judge = Callable[..., dict[str, np.ndarray]]


class Decisions(NamedTuple):
    """Of B observations; of one alone its values without the first axis."""

    action: Any  # (B,) names
    index: Any  # (B,) ids
    q: np.ndarray  # (B, A) Q(s, ·); of cloning its logits
    probability: np.ndarray  # (B, A) with which each action is taken
    gap: Any  # (B,) the best score above the second; 0 where one action alone is possible
    supported: Any  # (B,) bool, the data supports it
    behaviour: np.ndarray | None = None  # (B, A) what the log does, of a policy that knows it


@dataclass(frozen=True)
class Decider:
    """A policy to be asked. Made by `rbve.runtime.load`, and inside every Policy."""

    program: Callable[..., Mapping[str, np.ndarray]]
    actions: tuple[str, ...]  # names; the index is the id
    obs_shape: tuple[int, ...]
    features: Features | None = None  # what the columns of a flat observation mean
    masked: bool = False  # decisions have to be told which actions are legal
    values: bool = True  # Q are values, not logits
    units: int = 0  # of the memory
    rules: Rules = _GREEDY
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def memory(self) -> bool:
        return self.units > 0

    def start(self) -> Session:
        """An episode of decisions, for policies with a memory and those without."""
        return Session(self)

    def act(self, observation: Any, legal: Any = None) -> int | np.ndarray:
        """The action's id for one observation, or an array of them for a batch.

        An observation may be a row by column name, {"age": 61, ...}, or a list of rows. `legal`
        says which actions may be taken: True or False for each, or a list of ids or names, once or
        for each observation, or "all"; it is needed where the data had such masks. Decisions that
        the data does not support draw a warning.
        """
        found, single = self._decided(observation, legal)
        return int(found["action"][0]) if single else found["action"]

    def decide(self, observation: Any, legal: Any = None) -> str | list[str]:
        """The action by name, as the log called it."""
        found, single = self._decided(observation, legal)
        names = [self.actions[index] for index in found["action"].tolist()]
        return names[0] if single else names

    def decisions(self, observation: Any, legal: Any = None) -> Decisions:
        """Everything that is known of each decision, whether it is supported too; no warnings."""
        rows = self.read(observation)
        found = self.rows(rows.obs, self.mask(legal, len(rows.obs)))
        made = Decisions(
            np.array(self.actions)[found["action"]], found["action"], found["q"],
            found["probabilities"], found["gap"], found["supported"], found.get("behaviour"),
        )  # fmt: skip
        if not rows.single:
            return made
        return Decisions(
            str(made.action[0]), int(made.index[0]), made.q[0], made.probability[0],
            float(made.gap[0]), bool(made.supported[0]),
            None if made.behaviour is None else made.behaviour[0],
        )  # fmt: skip

    def q_values(self, observations: Any) -> np.ndarray:
        """Q(s, ·), one row per observation."""
        if not self.values:
            raise ValueError(
                "this policy learned which action the data takes, not what it is worth; use "
                "scores()"
            )
        return self._outputs("q", observations, "all")

    def scores(self, observations: Any, legal: Any = None) -> np.ndarray:
        """What the policy maximises: Q, filtered Q or logits, low where illegal."""
        return self._outputs("scores", observations, legal)

    def probabilities(self, observations: Any, legal: Any = None) -> np.ndarray:
        """The probability with which each action is taken."""
        return self._outputs("probabilities", observations, legal)

    def read(self, observation: Any) -> "Rows":
        """Observations as the dataset holds them, and whether one alone was given."""
        obs, single = read_rows(observation, self.obs_shape, self.features)
        return Rows(obs, single, is_named(observation))

    def mask(self, legal: Any, count: int) -> np.ndarray | None:
        return read_legal(legal, self.actions, count, self.masked)

    def warn(self, rows: "Rows", found: Mapping[str, np.ndarray], level: int = 4) -> None:
        """Of what lies far outside the training data, and of decisions without support."""
        if found["supported"].all():
            return
        self._warn_far(rows, level + 1)
        if "behaviour" in found:
            which = np.flatnonzero(~found["supported"])
            place = int(which[0])
            best = int(np.argmax(found["scores"][place]))
            more = f" ({len(which)} such rows)" if len(which) > 1 else ""
            done = int(found["action"][place])
            instead = "" if done == best else f"; {self.actions[done]!r} instead"
            chance = float(found["behaviour"][place, best])
            warnings.warn(
                f"row {place}: the data gives {self.actions[best]!r} no support here (it is taken "
                f"with probability {chance:.2g} there){instead}{more}",
                stacklevel=level,
            )

    def _warn_far(self, rows: "Rows", level: int) -> None:
        if self.features and rows.named and (far := self.features.far(rows.obs)):
            more = f" (and {len(far) - 1} more)" if len(far) > 1 else ""
            warnings.warn(f"far outside the training data: {far[0]}{more}", stacklevel=level)

    def rows(
        self, obs: np.ndarray, legal: np.ndarray | None = None, judge: Judge = weigh
    ) -> dict[str, np.ndarray]:
        """What is decided of observations (B, ...) as a dataset holds them; a dict of arrays. With
        `choose` for `judge` no more than acting needs."""
        if self.memory:
            raise ValueError(
                "this policy has a memory: begin an episode with session = policy.start() and call "
                "session.act(observation, last_reward)"
            )
        block = max(1, min(_ROWS, _AT_ONCE // max(1, math.prod(self.obs_shape))))
        if len(obs) <= block:
            return self.step(obs, legal, {}, judge=judge)[0]
        parts = []
        for i in range(0, len(obs), block):
            mask = None if legal is None else legal[i : i + block]
            parts.append(self.step(obs[i : i + block], mask, {}, i, judge)[0])
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def step(
        self,
        obs: np.ndarray,
        legal: np.ndarray | None,
        state: Mapping[str, np.ndarray],
        first: int = 0,
        judge: Judge = weigh,
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """What is decided, and the memory after it. `first` is the number of the first row."""
        seen, inside = self.encoded(obs, first)
        if legal is None:
            legal = np.ones((len(obs), len(self.actions)), np.bool_)
        outputs = dict(self.program(len(obs), obs=seen, legal=legal, **state))
        after = {str(name): outputs.pop(name) for name in ("hidden", "cell") if name in outputs}
        return judge(np, outputs, legal, inside, self.rules), after

    def encoded(self, obs: np.ndarray, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """What the network takes, and which rows lie within the training data."""
        with np.errstate(over="ignore"):  # told below
            if self._encoder is not None:
                seen, inside = self._encoder(obs)
            else:
                seen, inside = obs.astype(np.float32), np.ones(len(obs), np.bool_)
        if obs.dtype == np.uint8 and self._encoder is None:  # bytes are pixels
            seen /= np.float32(255)
        if not np.isfinite(seen).all():
            finite = np.isfinite(seen).reshape(len(seen), -1).all(axis=1)
            row = f"row {first + int(np.argmin(finite))} of the observations"
            raise ValueError(f"{row} holds values that are not finite in 32 bits")
        return seen, inside

    def begin(self) -> dict[str, np.ndarray]:
        """The memory before an episode."""
        return {name: np.zeros((1, self.units), np.float32) for name in ("hidden", "cell")}

    @cached_property
    def _encoder(self) -> Encoder | None:
        return None if self.features is None else Encoder(self.features)

    def _decided(self, observation: Any, legal: Any) -> tuple[dict[str, np.ndarray], bool]:
        rows = self.read(observation)
        found = self.rows(rows.obs, self.mask(legal, len(rows.obs)), choose)
        self.warn(rows, found, 5)
        return found, rows.single

    def _outputs(self, name: str, observations: Any, legal: Any) -> np.ndarray:
        rows = self.read(observations)
        found = self.rows(rows.obs, self.mask(legal, len(rows.obs)))
        values = found[name]
        if not found["supported"].all():
            self._warn_far(rows, 5)
        return values[0] if rows.single else values


class Rows(NamedTuple):
    """Observations that a caller gave."""

    obs: np.ndarray  # (B, ...) as a dataset holds them
    single: bool  # one alone was given
    named: bool  # by column name
