"""Learning to play from pixels: frames stored once, stacked when drawn, through convolutions."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import api, rows
from rbve.data import Dataset, Episode, View, load, write
from rbve.policy import Policy
from rbve.training.batches import table
from rbve.training.batches.transitions import NUMBERS
from rbve.training.run import POLICY

ROWS, COLUMNS, CELL = 10, 5, 4


def draw(ball: tuple[int, int], paddle: int) -> np.ndarray:
    """A frame of 40×20 bytes."""
    board = np.zeros((ROWS, COLUMNS), np.uint8)
    board[ball] = 255
    board[-1, paddle] = 255
    return np.kron(board, np.ones((CELL, CELL), np.uint8))


def best(column: int, paddle: int) -> int:
    return 1 + int(np.sign(column - paddle))


def played(rng: np.random.Generator) -> Episode:
    """One ball, from anywhere above the paddle; a fifth of the actions are random."""
    column, paddle, actions = rng.integers(COLUMNS), int(rng.integers(COLUMNS)), []
    frames = [draw((0, column), paddle)]
    for row in range(1, ROWS):
        noisy = rng.random() < 0.2
        actions.append(int(rng.integers(3)) if noisy else best(column, paddle))
        paddle = int(np.clip(paddle + actions[-1] - 1, 0, COLUMNS - 1))
        frames.append(draw((row, column), paddle))
    reward = np.zeros(len(actions))
    reward[-1] = 1 if paddle == column else -1
    return Episode.from_steps(np.stack(frames), actions, reward, True)


def catches(policy: Policy) -> float:
    """Share of balls caught, from every column and for every place of the paddle."""
    caught = 0
    for column in range(COLUMNS):
        for start in range(COLUMNS):
            paddle = start
            seen = np.zeros((ROWS * CELL, COLUMNS * CELL, 4), np.uint8)
            for row in range(ROWS - 1):
                frame = draw((row, column), paddle)
                seen = np.concatenate([seen[:, :, 1:], frame[:, :, None]], axis=2)
                paddle = int(np.clip(paddle + int(policy.act(seen)) - 1, 0, COLUMNS - 1))
            caught += paddle == column
    return caught / COLUMNS**2


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("pixels") / "catch"
    write(Dataset.from_episodes([played(rng) for _ in range(300)], 3), path)
    return path


def test_gray_frames_are_stacked_along_an_axis_of_their_own(store: Path) -> None:
    data = load(store)
    assert data.obs_shape == (40, 20)  # gray: no channel axis
    packed = table.transition_table([data], View(), "state", stack=4, in_memory=True)
    columns = table.transition_table([data], View(), "state", stack=4, in_memory=False)
    assert packed.items.obs_shape == columns.items.obs_shape == (40, 20, 4)
    index = np.array([0, 5, 200])
    picked = columns.columns[0].pick(index)
    assert packed.store.frames.nbytes == data.obs.nbytes + 40 * 20  # every frame once, and a blank
    device = jax.tree.map(jnp.asarray, packed.store)
    fetched = packed.items.fetch(device, jnp.asarray(index))
    assert fetched.frames.dtype == np.uint8
    rows = NUMBERS.column(columns.columns[0].numbers, "row")[index]
    for item, row in enumerate(rows):
        for k in range(4):
            there = row % ROWS >= 3 - k  # before the episode began there is nothing
            frame = data.obs[row - 3 + k] if there else np.zeros((40, 20))
            for frames in (picked.frames, fetched.frames):
                obs = packed.items.join(jnp.asarray(frames[:, 0]))
                np.testing.assert_array_equal(obs[item, :, :, k], frame)


@pytest.mark.parametrize(
    ("name", "steps", "settings", "share"), [("bc", 200, {}, 0.9), ("rbve", 250, {"lam": 0.5}, 0.8)]
)
def test_plays_from_pixels(
    name: str, steps: int, settings: dict[str, float], share: float, store: Path, tmp_path: Path
) -> None:
    plan = {"stack": 4, "rows": "disk", "batch_size": 32, "hidden": (64,), "every": 50}
    out = tmp_path / "runs"
    policy = api.train(
        store,
        name,
        steps=steps,
        learning_rate=1e-3,
        target_period=20,
        out=out,
        spec={**plan, "gamma": 0.9},
        **settings,
    )
    (folder,) = out.iterdir()
    losses = [
        row.value for run in rows.find([folder]) for row in run.rows if row.metric == "train/loss"
    ]
    assert len(losses) == steps // 50
    assert losses[-1] < 0.8 * losses[0]
    assert policy.torso == "atari"
    assert policy.obs_shape == (40, 20, 4)
    assert catches(policy) >= share  # at random: a fifth
    # Once more through a file of its own.
    policy.save(tmp_path / "again")
    again = Policy.load(tmp_path / "again")
    assert again.torso == "atari"
    assert again.hidden == (64,)
    obs = np.random.default_rng(1).integers(0, 256, (7, 40, 20, 4), np.uint8)
    np.testing.assert_array_equal(again.scores(obs), policy.scores(obs))
    np.testing.assert_array_equal(Policy.load(folder / POLICY).scores(obs), policy.scores(obs))
