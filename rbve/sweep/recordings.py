"""The recordings of a study and where they lie.

OUT/data/<env>-<noise>[-expert-<ε>][-script-<ε>][-r2d2]/<seed>
"""

from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, order=True)
class Recording:
    """One dataset on disk, whatever is kept of it later."""

    env: str
    noise: float
    expert: float | None
    seed: int
    episodes: int
    steps: int = 0  # of an online agent that goes by steps; 0 = by episodes
    script: float | None = None  # ε of a scripted player
    memory: bool = False  # the online agent is R2D2
    expert_episodes: int = 0  # of the expert alone; 0 = as many as of others

    def folder(self, out: Path) -> Path:
        name = f"{self.env.replace(':', '-')}-{self.noise:g}"
        for player in ("expert", "script"):
            epsilon = getattr(self, player)
            name += "" if epsilon is None else f"-{player}-{epsilon:g}"
        name += "-r2d2" * self.memory
        return out / "data" / name / str(self.seed)

    @property
    def size(self) -> str:
        if self.steps and self.expert is None and self.script is None:
            return f"{self.steps:,} steps"
        return f"{self.expert_episodes or self.episodes:,} episodes"

    @property
    def online(self) -> "Recording":
        """The recording whose best snapshot is the expert."""
        return replace(self, expert=None, expert_episodes=0)
