"""The parts of a Spec (rbve/spec.py). An attribute's text is its help on the command line."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from rbve import registry
from rbve.data.dataset import Dataset
from rbve.schema import UNSET

FRAMES = 4  # that make an observation of Atari
HOLDOUT = 0.2  # share of the episodes that judge training, where no environment does
FEWEST_EPISODES = 5  # of fewer, none is held out
if TYPE_CHECKING:
    Torso = str
else:  # by their files
    Torso = Literal[("auto", *registry.names(Path(__file__).parent / "networks" / "torsos"))]


@dataclass(frozen=True)
class DataRef:
    """Which data: a store, and what is kept of it.

    Attributes:
        path: A store, as `rbve record` and `rbve convert` write them.
        keep: Share of the episodes to train on.
        keep_seed: Seed of that choice.
        side: Only episodes above, or not above, the mean return.
        action: Train on the action the agent chose or the one the environment executed.
        fingerprint: Of the store's content, so that other data is another job.
        holdout: Share of the episodes that are held out of training and judge it. Default: 0.2
            without an environment, else 0.
        holdout_seed: Seed of that choice.
    """

    path: str = ""
    keep: float = 1.0
    keep_seed: int = 0
    side: Literal["all", "above", "below"] = "all"
    action: Literal["chosen", "executed"] = "chosen"
    fingerprint: str = ""
    holdout: float = UNSET
    holdout_seed: int = 0

    def of(self, dataset: Dataset) -> Dataset:
        """The episodes of an opened store that train."""
        kept = self._kept(dataset)
        held = self._held(kept.num_episodes)
        return kept.select(np.flatnonzero(~held), self.holdout_note) if held.any() else kept

    def held_out(self, dataset: Dataset) -> Dataset | None:
        """The other episodes of the same selection, in their recorded order; None = there are none.

        Every policy that was trained from a store names them: they are
        Spec.from_json(policy.info["job"]).data.held_out(store).
        """
        kept = self._kept(dataset)
        held = self._held(kept.num_episodes)
        return kept.select(np.flatnonzero(held), f"held out: {self._share}") if held.any() else None

    @property
    def holdout_note(self) -> str:
        """In the provenance of the episodes that train."""
        return f"not held out: {self._share}"

    @property
    def _share(self) -> str:
        return f"{self.holdout or 0:g} seed {self.holdout_seed}"

    def _held(self, episodes: int) -> np.ndarray:
        """(E,) bool, which episodes are held out: one at least, and never all."""
        held = np.zeros(episodes, bool)
        if self.holdout and episodes >= FEWEST_EPISODES:
            count = min(max(1, round(self.holdout * episodes)), episodes - 1)
            order = np.random.default_rng([self.holdout_seed, 2]).permutation(episodes)
            held[order[:count]] = True
        return held

    def _kept(self, dataset: Dataset) -> Dataset:
        if self.action == "executed":
            dataset = dataset.with_executed_actions()
        if self.side != "all":
            dataset = dataset.filter_by_return(self.side)
        return dataset.subsample(self.keep, self.keep_seed)


@dataclass(frozen=True)
class NetworkSpec:
    """What turns observations into values.

    Attributes:
        torso: What turns an observation into features: dense layers, the convolutions of the paper
            (atari; atari_valid pads nothing) or MinAtar's (board); auto = by the shape.
        hidden: Units per dense layer. Default: 56 56 for mlp, 512 for atari (with memory none), 128
            for board.
        stack: Frames joined into one observation; 0 = 4, unless the data holds them joined.
        memory: Units of an LSTM, for decisions that need to remember (R2D2: 512); it also sees the
            last action and the last reward. 0 = none.
        rescale: Learn values on R2D2's square-root scale. Default: with memory.
    """

    torso: Torso = "auto"
    hidden: tuple[int, ...] = ()
    stack: int = 1
    memory: int = 0
    rescale: bool = UNSET


@dataclass(frozen=True)
class OptimiserSpec:
    """How weights move.

    Attributes:
        learning_rate: Adam's step size (paper: 8e-5, 1e-4 or 3e-4).
        target_period: Updates between target syncs; 0 = steps / 800, but 100 at least (steps / 20
            under 2,000 steps): under a target that moves every few updates values run away.
        polyak: Move the target at every update by this share of the way to the online network,
            instead of copying it every --target-period updates; 0 = copies.
    """

    learning_rate: float = 3e-4
    target_period: int = UNSET
    polyak: float = 0.0


@dataclass(frozen=True)
class SamplingSpec:
    """What an update is computed from.

    Attributes:
        batch_size: Transitions per update, with memory sequences; 0 = 128, with memory 8.
        sequence: With memory: steps trained on at a time; 0 = whole episodes.
        burn_in: With --sequence: steps before them that only warm the memory (R2D2: 40).
        rows: Where rows wait to be drawn; auto = in memory up to 1 GiB, else on disk.
    """

    batch_size: int = UNSET
    sequence: int = 0
    burn_in: int = 0
    rows: Literal["auto", "memory", "disk"] = "auto"


@dataclass(frozen=True)
class EvaluationSpec:
    """Where and how often the policy is evaluated while it trains.

    Attributes:
        env: Where to evaluate; "auto" = where the data says it was recorded, "none" = nowhere.
            `rbve evaluate --help` lists environments, yours among them (gymnasium:MODULE:ID).
        eval_episodes: Episodes per evaluation.
        eval_epsilon: Share of random actions in evaluation (the paper's 0.4^8).
        every: Updates between evaluations and checkpoints; 0 = steps / 20.
        legal: "all" = all actions are legal, where the data has masks and the environment none.
        final_evaluations: Last evaluations whose mean is the final figure; none from the first half
            of the updates.
    """

    env: str | None = None
    eval_episodes: int = 100
    eval_epsilon: float = 0.4**8
    every: int = UNSET
    final_evaluations: int = 5
    legal: Literal["all"] | None = None


def default_period(steps: int) -> int:
    """Updates between target syncs: steps / 800 (the paper's 2500 of 2M), but no less than 100.

    A sync carries values one step back, so too few of them leave values short; under a target that
    moves every few updates they run away where actions are unseen. Runs under 2,000 updates keep 20
    syncs.
    """
    return max(1, steps // 800, min(100, steps // 20))
