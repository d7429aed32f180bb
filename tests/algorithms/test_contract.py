"""What every algorithm promises. A new file is covered the day it appears.

Files outside the package are covered through the environment variable RBVE_ALGORITHM_FILES, a list
of paths joined by the system's path separator:

    RBVE_ALGORITHM_FILES=my_algorithm.py python -m pytest tests/algorithms/test_contract.py
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from rbve import algorithms, ops
from rbve.data import Dataset, Episode
from rbve.networks import Network, build
from rbve.spec import Spec
from rbve.training.batches.table import Table, transition_table
from rbve.training.update import Member, TrainState, make_program, member_keys
from rbve.types import Batch, Head, Views

OBS, ACTIONS, ITEMS = 5, 4, 12
ENDED = np.array([2, 7, 11])  # rows after which nothing follows; the last has no legal action left
TD = ops.TD()
KEY = jax.random.key(5)


def under_test() -> list[str]:
    outside = os.environ.get("RBVE_ALGORITHM_FILES", "")
    return [*algorithms.names(), *filter(None, outside.split(os.pathsep))]


every_algorithm = pytest.mark.parametrize("name", under_test(), ids=lambda name: Path(name).stem)
with_and_without_masks = pytest.mark.parametrize("masked", [False, True], ids=["open", "masked"])


@functools.cache
def random_views(name: str) -> Views:
    """Outputs of networks of random weights for random states."""
    algorithm = algorithms.load(name)
    options = algorithm.options()

    @jax.jit
    def say(key: jax.Array) -> Head:
        weights, state, draw = jax.random.split(key, 3)
        network = build((OBS,), ACTIONS, algorithm.head, options, (8,), weights)
        # Without the short cut past the parts: they are what tests move and differentiate by.
        return network(jax.random.normal(state, (ITEMS, OBS)), draw)._replace(mix=None)

    now, later, target, target_now = (say(jax.random.fold_in(KEY, k)) for k in range(4))
    return Views(now, later, target, Partial(lambda head: head, target_now))


def random_batch(masked: bool) -> Batch:
    rng = np.random.default_rng(0)
    action, next_action = rng.integers(0, ACTIONS, (2, ITEMS), np.int32)
    discount = np.full(ITEMS, 0.9, np.float32)
    discount[ENDED] = 0
    next_action[ENDED] = 0
    legal, next_legal = rng.random((2, ITEMS, ACTIONS)) < 0.5
    legal[np.arange(ITEMS), action] = True
    next_legal[np.arange(ITEMS), next_action] = True
    next_legal[ENDED[-1]] = False
    g = rng.normal(0, 2, ITEMS)
    return jax.tree.map(
        jnp.asarray,
        Batch(
            action=action,
            reward=rng.normal(size=ITEMS).astype(np.float32),
            discount=discount,
            next_action=next_action,
            has_next_action=discount > 0,
            g=g.astype(np.float32),
            g_scale=np.float32(g.std()),
            weight=np.ones(ITEMS, np.float32),
            legal=legal if masked else None,
            next_legal=next_legal if masked else None,
        ),
    )


class Subject:
    """An algorithm with its default settings and something to judge."""

    def __init__(self, name: str, masked: bool) -> None:
        self.algorithm = algorithms.load(name)
        self.config, self.options = self.algorithm.config(), self.algorithm.options()
        self.views = random_views(name)
        self.batch = random_batch(masked)
        self.compiled = jax.jit(jax.grad(lambda now, *rest: self.total(now, *rest), has_aux=True))

    def total(self, now: Head, views: Views, batch: Batch) -> tuple[jax.Array, Any]:
        views = views._replace(now=now)
        loss, metrics = self.algorithm.loss(views, batch, self.config, self.options, TD, KEY)
        return jnp.sum(loss), (loss, metrics)

    def __call__(self, views: Views, batch: Batch) -> tuple[np.ndarray, Any, Head]:
        """Losses, metrics, and the gradient of the summed losses by what the network says."""
        gradient, (loss, metrics) = self.compiled(views.now, views, batch)
        return np.asarray(loss), metrics, gradient


@functools.cache
def subject(name: str, masked: bool) -> Subject:
    return Subject(name, masked)


def shift(head: Head, where: jax.Array, by: float) -> Head:
    """Everything the head says about the actions in `where` (B, A), moved."""

    def moved(values: jax.Array | None) -> jax.Array | None:
        if values is None:
            return None
        place = where if values.ndim == 2 else where[:, None, :]
        return jnp.where(place, values + by, values)

    return head._replace(
        q=moved(head.q),
        ranked=moved(head.ranked),
        parts=moved(head.parts),
        logits=moved(head.logits),
    )


@every_algorithm
def test_file_says_what_it_is(name: str) -> None:
    path = Path(name) if name.endswith(".py") else algorithms.FOLDER / f"{name}.py"
    doc = ast.get_docstring(ast.parse(path.read_text()))
    assert doc, f"{path} has no docstring"
    equations = [line for line in doc.splitlines() if "=" in line]
    assert equations, f"the docstring of {path} holds no equation"
    algorithm = algorithms.load(name)
    made = jax.eval_shape(
        lambda key: build((OBS,), ACTIONS, algorithm.head, algorithm.options(), (8,), key), KEY
    )
    assert isinstance(made, Network)
    assert algorithm.bootstrap in ("state", "pair", "return", "none")


@every_algorithm
def test_settings_have_defaults_of_json(name: str) -> None:
    algorithm = algorithms.load(name)
    config, options = algorithm.config(), algorithm.options()
    assert all(isinstance(value, int | float) for value in config)
    assert hash(options) == hash(algorithm.options())
    chosen = dataclasses.asdict(options)
    assert algorithm.options(**json.loads(json.dumps(chosen))) == options
    assert not set(config._fields) & set(chosen)
    spec = Spec.of(algorithm=name).resolved()
    assert spec.load_options() == options
    assert spec.load_config() == config
    assert spec.settings == {**config._asdict(), **chosen}


@every_algorithm
@with_and_without_masks
def test_loss_is_one_finite_value_per_item(name: str, masked: bool) -> None:
    judged = subject(name, masked)
    loss, metrics, gradient = judged(judged.views, judged.batch)
    assert loss.shape == (ITEMS,)
    assert np.isfinite(loss).all()
    assert isinstance(metrics, dict)
    for key, value in metrics.items():
        assert isinstance(key, str)
        assert np.broadcast_shapes(value.shape, (ITEMS,)) == (ITEMS,), key
        assert jnp.isfinite(value).all(), key
    leaves = jax.tree.leaves(gradient)
    assert all(jnp.isfinite(leaf).all() for leaf in leaves)
    assert any((leaf != 0).any() for leaf in leaves), "the loss teaches nothing"


@every_algorithm
@pytest.mark.parametrize("by", [1e6, -1e6])
def test_illegal_actions_change_neither_loss_nor_gradient(name: str, by: float) -> None:
    judged = subject(name, masked=True)
    now, later = ~judged.batch.legal, ~judged.batch.next_legal
    views = judged.views
    moved = Views(
        shift(views.now, now, by),
        shift(views.next, later, by),
        shift(views.target, later, by),
        Partial(lambda head: head, shift(views.target_now, now, by)),
    )
    loss, _, gradient = judged(views, judged.batch)
    moved_loss, _, moved_gradient = judged(moved, judged.batch)
    np.testing.assert_allclose(moved_loss, loss, rtol=1e-6, atol=1e-6)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6),
        moved_gradient,
        gradient,
    )


@every_algorithm
@with_and_without_masks
def test_terminal_rows_ignore_the_next_state(name: str, masked: bool) -> None:
    judged = subject(name, masked)
    everywhere = jnp.ones((ITEMS, ACTIONS), bool)
    views, batch = judged.views, judged.batch
    other = views._replace(
        next=shift(jax.tree.map(lambda x: -x, views.next), everywhere, 10.0),
        target=shift(jax.tree.map(lambda x: -x, views.target), everywhere, 10.0),
    )
    other_batch = batch._replace(next_action=(batch.next_action + 1) % ACTIONS)
    loss, _, _ = judged(views, batch)
    other_loss, _, _ = judged(other, other_batch)
    np.testing.assert_array_equal(other_loss[ENDED], loss[ENDED])
    goes_on = np.setdiff1d(np.arange(ITEMS), ENDED)
    if judged.algorithm.bootstrap in ("return", "none"):
        np.testing.assert_array_equal(other_loss, loss)
    else:
        assert (other_loss[goes_on] != loss[goes_on]).any()


@every_algorithm
@with_and_without_masks
def test_items_may_come_as_sequences(name: str, masked: bool) -> None:
    judged = subject(name, masked)

    def fold(tree: Any) -> Any:
        return jax.tree.map(lambda x: x.reshape(3, 4, *x.shape[1:]) if x.ndim else x, tree)

    flat, _, _ = judged(judged.views, judged.batch)
    folded, metrics, _ = judged(fold(judged.views), fold(judged.batch))
    np.testing.assert_allclose(folded.reshape(-1), flat, rtol=1e-6, atol=1e-6)
    for value in metrics.values():
        assert np.broadcast_shapes(value.shape, (3, 4)) == (3, 4)


@every_algorithm
def test_scores_never_choose_an_illegal_action(name: str) -> None:
    judged = subject(name, masked=True)
    algorithm, legal = judged.algorithm, judged.batch.legal

    def scores(head: Head, legal: jax.Array | None) -> np.ndarray:
        return np.asarray(algorithm.scores(head, legal, judged.config, judged.options))

    free = scores(judged.views.now, None)
    assert free.shape == (ITEMS, ACTIONS)
    assert not np.isnan(free).any()
    tempting = shift(judged.views.now, ~legal, 1e6)
    only = ops.one_hot(judged.batch.action, ACTIONS)
    for head in (judged.views.now, tempting, shift(tempting, legal, -1e6)):
        for mask in (legal, only):
            said = scores(head, mask)
            assert said.shape == (ITEMS, ACTIONS)
            assert np.take_along_axis(np.asarray(mask), said.argmax(-1)[:, None], -1).all()


@functools.cache
def small_dataset(masked: bool) -> Dataset:
    rng = np.random.default_rng(1)
    episodes = []
    for index in range(30):
        steps = int(rng.integers(3, 12))
        episode = Episode.from_steps(
            rng.normal(size=(steps + 1, OBS)).astype(np.float32),
            rng.integers(0, ACTIONS, steps),
            rng.normal(size=steps),
            terminated=index % 3 > 0,
        )
        legal = rng.random((steps + 1, ACTIONS)) < 0.6
        legal[np.arange(steps), episode.action[:-1]] = True
        legal[-1] = index % 3 == 0  # nothing is legal after termination
        episodes.append(episode._replace(legal=legal if masked else None))
    return Dataset.from_episodes(episodes, ACTIONS)


class Trainer:
    """An algorithm's compiled loop on a small dataset."""

    def __init__(self, name: str, masked: bool) -> None:
        spec = Spec.of(algorithm=name, hidden=(12, 10), batch_size=32).resolved()
        algorithm = spec.load_algorithm()
        self.table: Table = transition_table(
            [algorithm.keep(small_dataset(masked))], spec.view, algorithm.bootstrap
        )
        self.program = make_program(spec, self.table.items)
        self.config = jax.tree.map(jnp.float32, spec.load_config())
        self.advance = jax.jit(self.program.advance)

    def start(self, seed: int) -> TrainState:
        return self.program.init(member_keys(seed)[0])

    def train(self, seed: int, updates: int = 200) -> tuple[TrainState, dict[str, jax.Array]]:
        member = Member(
            key=member_keys(seed)[1],
            offset=jnp.int32(self.table.offset[0]),
            size=jnp.int32(self.table.count[0]),
            g_scale=jnp.float32(self.table.g_scale[0]),
            learning_rate=jnp.float32(1e-3),
            target_period=jnp.int32(50),
            config=self.config,
        )
        rows = jax.tree.map(jnp.asarray, self.table.store)
        return self.advance(self.start(seed), rows, member, updates)

    def weights(self, state: TrainState) -> list[np.ndarray]:
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self.program.unravel(state.params))]


@functools.cache
def trainer(name: str, masked: bool) -> Trainer:
    return Trainer(name, masked)


# Without masks every algorithm is trained by other tests too (tests/algorithms/test_tabular.py).
@every_algorithm
@pytest.mark.parametrize(
    "masked", [pytest.param(False, marks=pytest.mark.slow), True], ids=["open", "masked"]
)
def test_training_stays_finite_and_moves_every_weight(name: str, masked: bool) -> None:
    loop = trainer(name, masked)
    state, sums = loop.train(seed=0)
    assert int(state.step) == 200
    assert int(state.diverged_at) == -1
    assert jnp.isfinite(state.params).all()
    for key, value in sums.items():
        assert jnp.isfinite(value).all(), key
    for before, after in zip(loop.weights(loop.start(0)), loop.weights(state), strict=True):
        # A ReLU may be dead from the start; nearly all entries move.
        assert (before != after).mean() > 0.9


@every_algorithm
def test_seeds_differ_in_every_weight(name: str) -> None:
    loop = trainer(name, masked=True)
    for states in ([loop.start(0), loop.start(1)], [loop.train(0)[0], loop.train(1)[0]]):
        for one, two in zip(*map(loop.weights, states), strict=True):
            if one.ndim > 1:
                assert (one != two).all()


@every_algorithm
def test_the_same_seed_gives_the_same_bits(name: str) -> None:
    loop = trainer(name, masked=True)
    (one, sums_one), (two, sums_two) = loop.train(3), loop.train(3)
    for a, b in zip(
        jax.tree.leaves((one, sums_one)), jax.tree.leaves((two, sums_two)), strict=True
    ):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_files_outside_the_package_are_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RBVE_ALGORITHM_FILES", os.pathsep.join(["/a/mine.py", "yours.py"]))
    assert under_test() == [*algorithms.names(), "/a/mine.py", "yours.py"]
    monkeypatch.delenv("RBVE_ALGORITHM_FILES")
    assert under_test() == algorithms.names()
