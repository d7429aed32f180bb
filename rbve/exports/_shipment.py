"""What is shipped: a policy, how it is put to use, and the checks that the copy agrees with it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from rbve.data.features import Feature
from rbve.policy.core import core, program_of, shapes
from rbve.policy.policy import Policy
from rbve.policy.trace import trace
from rbve.runtime.decider import Decider
from rbve.runtime.outcome import Rules, weigh
from rbve.runtime.program import Program

STATE = ("last_action", "last_reward", "hidden", "cell")
_ROWS = (1, 5)  # of the observations by which a copy is checked


@dataclasses.dataclass(frozen=True)
class Shipment:
    """A policy to be written.

    Attributes:
        policy: What is shipped.
        rules: How it acts.
        bytes_in: Its observations are bytes: pixels.
    """

    policy: Policy
    rules: Rules
    bytes_in: bool = False

    def decider(self) -> Decider:
        """With the network's outputs as a Program."""
        program = program_of(self.policy)
        return dataclasses.replace(
            self.policy.decider, program=program, rules=self.rules, info=self.info()
        )

    def whole(self) -> Program:
        """From encoded observations, legal actions and whether a row lies inside the data to
        decisions."""
        compute, taken = core(self.policy), shapes(self.policy)
        taken |= {"inside": ((), np.bool_)}

        def every(inside: Any, legal: Any, **inputs: Any) -> dict[str, Any]:
            outputs = compute(legal=legal, **inputs)
            after = {f"next_{n}": outputs.pop(n) for n in ("hidden", "cell") if n in outputs}
            return weigh(jnp, outputs, legal, inside, self.rules) | after

        return trace(every, taken)

    def info(self) -> dict[str, Any]:
        """Where the policy comes from."""
        job = self.policy.info.get("job", {})
        data = job.get("data", {})
        return {
            "algorithm": self.policy.algorithm.name,
            "data": data.get("path", ""),
            "data_fingerprint": data.get("fingerprint", ""),
            "step": self.policy.info.get("step", 0),
            "gamma": job.get("view", {}).get("gamma", 0.99),
        }

    def samples(self) -> list[dict[str, np.ndarray]]:
        """Random inputs: observations as a dataset holds them, masks and memories."""
        rng = np.random.default_rng(0)
        policy = self.policy
        made = []
        for rows in _ROWS:
            legal = rng.random((rows, len(policy.actions))) < 0.7
            legal[np.arange(rows), rng.integers(len(policy.actions), size=rows)] = True
            one: dict[str, np.ndarray] = {"obs": self._observations(rng, rows), "legal": legal}
            if policy.memory:
                units = self.policy.decider.units
                one["last_action"] = rng.integers(-1, len(policy.actions), rows).astype(np.int32)
                one["last_reward"] = rng.normal(size=rows).astype(np.float32)
                one |= {n: rng.normal(size=(rows, units)).astype(np.float32) / 2 for n in STATE[2:]}
            made.append(one)
        return made

    def _observations(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        shape = (rows, *self.policy.obs_shape)
        if self.policy.features is not None:
            return np.stack([_column(c, rng, rows) for c in self.policy.features.columns], axis=1)
        if self.bytes_in:
            return rng.integers(0, 256, shape).astype(np.uint8)
        return rng.normal(size=shape).astype(np.float32)


def _column(column: Feature, rng: np.random.Generator, rows: int) -> np.ndarray:
    if column.kind == "category":
        return rng.integers(0, len(column.categories), rows).astype(np.float64)
    low = max(column.low, column.mean - column.scale)
    high = min(column.high, column.mean + column.scale)
    return rng.uniform(low, max(low, high), rows)


def check_equal(
    mine: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray], where: str
) -> None:
    """ValueError where a copy's figures are not the policy's, up to the order of additions."""
    for name in ("q", "scores", "probabilities", "gap"):
        one, other = np.asarray(mine[name]), np.asarray(theirs[name])
        if one.shape != other.shape or not np.allclose(one, other, rtol=1e-4, atol=1e-4):
            far = np.abs(one - other).max() if one.shape == other.shape else np.inf
            raise ValueError(
                f"{where}: its {name} differ from the policy's by up to {far:.3g}; nothing was "
                "written. Please report the algorithm and network"
            )
