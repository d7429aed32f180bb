"""Behaviour cloning of the better episodes (arXiv:2103.09575, section 5.2).

L(θ) = −E_{D+} [ log π_θ(a | s) ],   D+ = episodes whose return exceeds the mean return
"""

from __future__ import annotations

import warnings

from rbve.algorithms import bc
from rbve.data.dataset import Dataset

HEAD = bc.HEAD
BOOTSTRAP = bc.BOOTSTRAP
VALUES = bc.VALUES
Config = bc.Config
loss = bc.loss


def keep(dataset: Dataset) -> Dataset:
    returns = dataset.episode_return[dataset.returns_known]
    if len(returns) == dataset.num_episodes and returns.max() <= returns.mean():
        warnings.warn(
            "all episodes have the same return, so filtered_bc clones all of them", stacklevel=2
        )
        return dataset
    return dataset.filter_by_return("above")
