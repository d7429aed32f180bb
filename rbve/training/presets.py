"""Settings that belong together, by name: what a paper says of one benchmark, in one place.

A preset holds fields of `rbve train` and is what they are where no flag says otherwise. `stack` 0
leaves it to the data how many frames have to be joined.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rbve.parts import FRAMES
from rbve.registry import unknown

_PRESETS: dict[str, Mapping[str, Any]] = {
    # arXiv:2103.09575, table "Atari experiments' hyperparameters" and the text above it.
    "rlu-atari": {
        "torso": "atari",  # 32, 64, 64 channels; 8, 4, 3 wide; strides 4, 2, 1
        "hidden": (512,),
        "stack": 0,
        "batch_size": 256,
        "gamma": 0.99,
        "clip_rewards": True,
        "td": "square",  # as the paper writes it
        "steps": 2_000_000,
        "target_period": 2500,
        "learning_rate": 1e-4,  # found on the nine online games, of 8e-5, 1e-4, 3e-4
        "final_evaluations": 1,  # "the final snapshot"
        "holdout": 0.0,  # the paper trains on all episodes
    },
    # Table "Deepmind Lab experiments' hyperparameters" and, for n-step, the text; h is R2D2's.
    "rlu-dmlab": {
        "torso": "atari",  # the same convolutions, whose features enter the memory as they are
        "memory": 512,
        "batch_size": 8,  # whole episodes
        "gamma": 0.997,
        "n_step": 5,
        "td": "square",
        "steps": 50_000,
        "target_period": 400,
        "learning_rate": 1e-4,  # of 8e-5, 1e-4, 3e-4, chosen per level in the paper
        "holdout": 0.0,
    },
    # R2D2 where a view is a few numbers and the computer a CPU, as the studies here train it. γ is
    # not its .997, under which a policy that dawdles loses next to nothing in short episodes.
    "small-memory": {"memory": 64, "n_step": 5, "gamma": 0.99},
}


def load(name: str | None) -> dict[str, Any]:
    """Fields of a preset; none of None."""
    if name is None:
        return {}
    if name not in _PRESETS:
        raise unknown("preset", name, list(_PRESETS))
    return dict(_PRESETS[name])


def frames_to_join(shapes: Sequence[tuple[int, ...]]) -> int:
    """How many frames of each dataset make one observation: none where they are stored joined."""
    wanted = {1 if len(shape) == 3 and shape[-1] == FRAMES else FRAMES for shape in shapes}
    if len(wanted) > 1:
        raise ValueError(
            f"some of the data holds single frames and some holds them joined by {FRAMES} "
            "(SARSA tuples); train them apart"
        )
    return wanted.pop()
