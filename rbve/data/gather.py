"""Episodes that come one by one, gathered into the parts of a Source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rbve.data.dataset import OPTIONAL_COLUMNS, Dataset, Episode
from rbve.data.features import Features
from rbve.data.source import PART_BYTES, Source


def gather(
    episodes: Iterable[Episode],
    path: Path,
    actions: tuple[str, ...],
    provenance: dict[str, Any],
    total: int,
    features: Features | None = None,
) -> Source:
    """A Source of `total` episodes of the file or folder at `path`, counted in episodes."""
    done = 0

    def parts() -> Iterator[Dataset]:
        nonlocal done
        for held in groups(_alike(episodes, path)):
            yield Dataset.from_episodes(
                held, actions, provenance, features, where=f"{path}: ", first=done
            )
            done += len(held)

    return Source(parts(), total, lambda: done)


def groups(episodes: Iterable[Episode], most: int = PART_BYTES) -> Iterator[list[Episode]]:
    """Lists of about `most` bytes, or of one episode that is larger."""
    held: list[Episode] = []
    size = 0
    for episode in episodes:
        added = sum(getattr(column, "nbytes", 0) for column in episode)
        if held and size + added > most:
            yield held
            held, size = [], 0
        held.append(episode)
        size += added
    if held:
        yield held


def _alike(episodes: Iterable[Episode], path: Path) -> Iterator[Episode]:
    """All with the columns and the type of observations of the first one."""
    first: Episode | None = None
    for index, episode in enumerate(episodes):
        first = first or episode
        for name in OPTIONAL_COLUMNS:
            if (getattr(episode, name) is None) != (getattr(first, name) is None):
                raise ValueError(
                    f"{path}: episode {index}: '{name}' must be there in all episodes or in none"
                )
        if episode.obs.shape[1:] != first.obs.shape[1:]:
            raise ValueError(
                f"{path}: episode {index}: observations have shape {episode.obs.shape[1:]}, those "
                f"of the first episode {first.obs.shape[1:]}"
            )
        if not np.can_cast(episode.obs.dtype, first.obs.dtype):
            raise ValueError(
                f"{path}: episode {index}: observations are {episode.obs.dtype}, those of the "
                f"first episode {first.obs.dtype}"
            )
        yield episode._replace(obs=episode.obs.astype(first.obs.dtype, copy=False))
