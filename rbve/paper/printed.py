"""Numbers the paper prints (arXiv:2103.09575), to stand beside those measured here."""

from typing import NamedTuple


class _Recorded(NamedTuple):
    """A line of the table 'BSuite dataset details'."""

    env: str
    noise: float
    episodes: int
    transitions: int  # as printed, rounded to thousands (catch: hundreds)
    length: int  # mean, in steps


class Score(NamedTuple):
    mean: float
    error: float  # standard error


# Environment, episodes; then transitions and mean length by noise.
BSUITE_DATA = tuple(
    _Recorded(env, noise, episodes, *sizes)
    for env, episodes, by_noise in (
        ("cartpole", 1000, ((k * 1_000, k) for k in (710, 773, 649, 607, 672, 643))),
        ("catch", 200, [(1_800, 9)] * 6),
        ("mountain_car", 50, ((10_000, 205), (10_000, 210), (22_000, 447),
                              (13_000, 277), (12_000, 250), (24_000, 494))),
    )
    for noise, sizes in zip((0.0, 0.1, 0.2, 0.3, 0.4, 0.5), by_noise, strict=True)
)  # fmt: skip

# Table 'Atari Offline Policy Selection Results': median normalised score over 37 games.
ATARI_MEDIANS = {
    "BC": 50.8, "DDQN": 83.1, "CQL": 98.9, "BCQ": 102.6, "IQN": 104.8, "REM": 104.7,
    "R-DQN": 108.2, "R-BVE": 109.1,
}  # fmt: skip

# Table 'Detailed Results on the DeepMind Lab': level -> method -> score.
DMLAB_METHODS = ("BC", "R2D2", "CQL", "BVE", "R-BVE")
DMLAB = {
    level: {name: Score(*pair) for name, pair in zip(DMLAB_METHODS, pairs, strict=True)}
    for level, pairs in {
        "explore_object_rewards_many":
            ((1.8, 1.0), (19.8, 4.0), (23.8, 5.1), (23.7, 3.8), (31.4, 1.7)),
        "explore_object_rewards_few":
            ((2.9, 1.4), (8.5, 3.4), (9.3, 2.5), (7.6, 2.1), (13.4, 2.6)),
        "rooms_watermaze":
            ((0.1, 0.1), (2.7, 1.4), (4.0, 3.7), (9.9, 2.7), (14.1, 4.2)),
        "rooms_select_nonmatching_object":
            ((1.1, 4.6), (5.4, 2.3), (3.4, 2.4), (9.4, 2.3), (9.6, 3.2)),
        "seekavoid_arena_01, ε = 0":
            ((28.02, 7.6), (4.7, 3.0), (12.8, 10.7), (4.4, 0.9), (17.07, 10.1)),
        "seekavoid_arena_01, ε = 0.01":
            ((32.4, 1.3), (5.5, 1.6), (12.7, 5.4), (4.1, 1.8), (19.8, 4.9)),
        "seekavoid_arena_01, ε = 0.1":
            ((18.9, 14.4), (8.6, 3.0), (16.3, 7.7), (11.775, 4.5), (31.8, 4.7)),
        "seekavoid_arena_01, ε = 0.25":
            ((17.46, 7.5), (13.5, 5.1), (13.5, 5.06), (9.0, 0.25), (25.57, 7.0)),
    }.items()
}  # fmt: skip


def beside(env: str, noise: float) -> list[_Recorded]:
    """The paper's lines of an environment at a noise, or at the two noises around it."""
    own = [each for each in BSUITE_DATA if each.env == env]
    exact = [each for each in own if each.noise == noise]
    below = [each for each in own if each.noise < noise]
    above = [each for each in own if each.noise > noise]
    return exact or below[-1:] + above[:1]
