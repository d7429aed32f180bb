"""What an algorithm's own file may bring: heads, towers, an optimiser, targets at s, time order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from support.sequences import dataset, program_for
from support.sequences import member as sequence_member
from support.tiers import first_and_slow

from rbve import ops, rows
from rbve.algorithms import NoOptions
from rbve.data import Dataset
from rbve.networks import build, part_labels
from rbve.policy import Policy
from rbve.spec import Spec
from rbve.training.batches.table import transition_table
from rbve.training.run import POLICY, train_members
from rbve.training.update import DRAWS, Member, Program, draw, make_program, member_keys
from rbve.types import Tower

HEADER = '''"""Mine: L = E (r + γ Q' − Q)²."""
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from rbve import ops
from rbve.algorithms import dqn
from rbve.networks import part_labels
from rbve.networks.layers import Linear
from rbve.types import Tower

HEAD, BOOTSTRAP = "q", "state"


class Config(NamedTuple):
    temperature: float = 0.03
    expectile: float = 0.8


@dataclass(frozen=True)
class Options:
    double: bool = True
    width: int = 6


def loss(views, batch, config, options, td, key):
    return dqn.loss(views, batch, config, options, td, key)
'''
MUNCHAUSEN = '''
def loss(views, batch, config, options, td, key):
    """r + α τ log π(a|s) + γ Σ π(a'|s') (Q'(s', a') − τ log π(a'|s')), π the target's softmax."""
    tau = config.temperature
    here, later = views.target_now.q, views.target.q
    bonus = tau * ops.select(jax.nn.log_softmax(here / tau), batch.action)
    log_policy = jax.nn.log_softmax(later / tau)
    value = jnp.sum(jnp.exp(log_policy) * (later - tau * log_policy), axis=-1)
    q = ops.select(views.now.q, batch.action)
    value = td(q, batch.reward + 0.9 * jnp.maximum(bonus, -1.0), batch.discount, value)
    return value, {"bonus": bonus}
'''
V_HEAD = """
class V(eqx.Module):
    hidden: Linear
    out: Linear

    def __init__(self, features, actions, key, width):
        first, second = jax.random.split(key)
        self.hidden, self.out = Linear(features, width, first), Linear(width, 1, second)

    def __call__(self, x, key):
        return {"v": self.out(jax.nn.relu(self.hidden(x)))[0]}
"""
IQL = (
    V_HEAD
    + '''
HEAD = ("q", Tower(V), "policy")


def loss(views, batch, config, options, td, key):
    """V → expectile of Q' at s; Q → r + γ V(s'); logits → actions of large advantage."""
    advantage = ops.select(views.target_now.q, batch.action) - views.now.extra["v"]
    value = jnp.abs(config.expectile - (advantage < 0)) * advantage**2
    q = ops.select(views.now.q, batch.action)
    value += td(q, batch.reward, batch.discount, views.next.extra["v"])
    weight = jnp.minimum(jnp.exp(jax.lax.stop_gradient(advantage)), 100.0)
    log_policy = jax.nn.log_softmax(ops.mask(views.now.logits, batch.legal))
    return value - weight * ops.select(log_policy, batch.action), {"v": views.now.extra["v"]}


def scores(head, legal, config, options):
    return ops.mask(head.logits, legal)
'''
)
TWO_HIDDEN = """
class Wide(eqx.Module):
    layers: tuple[Linear, ...]

    def __init__(self, features, actions, key, width=3):
        keys = jax.random.split(key)
        self.layers = Linear(features, width, keys[0]), Linear(width, actions, keys[1])

    def __call__(self, x, key):
        return {"q": self.layers[1](jax.nn.relu(self.layers[0](x))).T}


HEAD = Wide
"""
DECAYED = """
def optimiser(options):
    def make(learning_rate):
        schedule = optax.cosine_decay_schedule(learning_rate, 60)
        return optax.chain(
            optax.clip_by_global_norm(0.5), optax.adamw(schedule, weight_decay=0.1)
        )
    return make
"""
BY_PART = """
HEAD = ("q", Tower("policy"))


def loss(views, batch, config, options, td, key):
    value, metrics = dqn.loss(views, batch, config, options, td, key)
    return value + jnp.sum(views.now.logits**2, axis=-1), metrics


def optimiser(options):
    def make(learning_rate):
        rates = {"torso": 0.0, "memory": 1.0, "head": 1.0, "policy": 10.0}
        each = {name: optax.sgd(rate * learning_rate) for name, rate in rates.items()}
        return optax.multi_transform(each, part_labels)
    return make
"""
PLAN = {"steps": 30, "every": 30, "env": None}


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    def write(source: str) -> Path:
        path = tmp_path / "mine.py"
        path.write_text(HEADER + source)
        return path

    return write


@pytest.mark.parametrize("memory", first_and_slow([0, 4]))  # a fast one with: BCQ, below
@pytest.mark.parametrize(
    ("source", "own"),
    [(MUNCHAUSEN, ""), (IQL, "scores"), (TWO_HIDDEN, "a head"), (BY_PART, "")],
    ids=["munchausen", "iql", "head", "parts"],
)
def test_it_trains_and_its_policy_loads(
    source: str,
    own: str,
    memory: int,
    file: Callable[[str], Path],
    small_job: Callable[..., Spec],
    catch: Dataset,
    tmp_path: Path,
) -> None:
    path = file(source)
    job = small_job(str(path), {**PLAN, "memory": memory})
    train_members([job], [catch], [tmp_path / "run"])
    saved = tmp_path / "run" / POLICY
    if own:
        words = rf"mine\.py has {own} of its own.*algorithm='mine\.py'.*--algorithm mine\.py"
        with pytest.raises(ValueError, match=words):
            Policy.load(saved)
    policy = Policy.load(saved, algorithm=path if own else None)
    session = policy.start()
    assert 0 <= session.act(np.ones((10, 5), np.float32)) < 3
    policy.save(tmp_path / "again")
    again = Policy.load(tmp_path / "again", algorithm=path if own else None).start()
    again.act(np.ones((10, 5), np.float32))
    np.testing.assert_array_equal(session.scores, again.scores)
    run = rows.read(tmp_path / "run" / rows.FILE)
    assert np.isfinite(run.last("train/loss"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "towers"), [("bcq", 2), ("iql", 3), ("crr", 2), ("qr_cql", 1), ("munchausen", 1)]
)
def test_towers_train_with_memory(
    name: str, towers: int, small_job: Callable[..., Spec], catch: Dataset, tmp_path: Path
) -> None:
    """A tower has a torso and a memory of its own, and the policy acts from all of them."""
    train_members([small_job(name, {**PLAN, "memory": 4})], [catch], [tmp_path / "run"])
    policy = Policy.load(tmp_path / "run" / POLICY)
    assert policy.network.start(1).hidden.shape == (towers * 4, 1)
    session = policy.start()
    session.act(np.ones((10, 5), np.float32))
    again = policy.start()
    again.act(np.zeros((10, 5), np.float32))
    for each in (session, again):
        each.last_action = 0
        each.act(np.ones((10, 5), np.float32), last_reward=0.0)
    assert (session.scores != again.scores).any()  # they remember what was seen before


def loop(path: Path, small_job: Callable[..., Spec], catch: Dataset, **plan: Any) -> Any:
    """Program, state, store and a function that trains to a step."""
    spec = small_job(str(path), {**PLAN, **plan})
    table = transition_table([catch], spec.view, "state")
    program = make_program(spec, table.items)
    updates = member_keys(0)[1]
    member = Member(
        key=updates,
        offset=jnp.int32(0),
        size=jnp.int32(table.count[0]),
        g_scale=jnp.float32(1),
        learning_rate=jnp.float32(0.01),
        target_period=jnp.int32(7),
        config=jax.tree.map(jnp.float32, program.algorithm.config()),
    )
    store = jax.tree.map(jnp.asarray, table.store)
    advance = jax.jit(program.advance)
    return (
        program,
        table.items,
        member,
        store,
        lambda state, until: advance(state, store, member, until)[0],
    )


def gradient_at(program: Program, items: Any, member: Any, store: Any, state: Any) -> Any:
    """The gradient of the update after `state`, by plain calls of the parts of a program."""
    key_draws, key_loss = jax.random.split(member.key)
    drawn = draw(key_draws, state.step // DRAWS, member.size, 16)[state.step % DRAWS]
    picked = items.fetch(store, drawn)
    keys = jax.random.split(jax.random.fold_in(key_loss, state.step), 4)

    def total(params: Any) -> Any:
        views = items.views(
            program.unravel(params), program.unravel(state.target), picked, keys[:3]
        )
        batch = items.batch(picked, member.g_scale)
        value, _ = program.algorithm.loss(
            views, batch, member.config, program.options, ops.TD(), keys[3]
        )
        return jnp.mean(value)

    return jax.grad(total)(state.params)


def test_an_optimiser_with_decay_a_schedule_and_clipping(
    file: Callable[[str], Path], small_job: Callable[..., Spec], catch: Dataset
) -> None:
    program, items, member, store, train = loop(file(DECAYED), small_job, catch)
    state = program.init(member_keys(0)[0])
    reference = optax.chain(
        optax.clip_by_global_norm(0.5),
        optax.adamw(optax.cosine_decay_schedule(0.01, 60), weight_decay=0.1),
    )
    params, opt = state.params, reference.init(state.params)
    for step in range(1, 6):
        grad = gradient_at(program, items, member, store, state)
        moves, opt = reference.update(grad, opt, params)
        params = params + moves
        state = train(state, step)
        np.testing.assert_allclose(state.params, params, rtol=1e-5, atol=1e-6)


def test_parts_learn_at_rates_of_their_own(
    file: Callable[[str], Path], small_job: Callable[..., Spec], catch: Dataset
) -> None:
    program, items, member, store, train = loop(file(BY_PART), small_job, catch)
    state = program.init(member_keys(0)[0])
    grad = program.unravel(gradient_at(program, items, member, store, state))
    before, after = (program.unravel(each.params) for each in (state, train(state, 1)))
    moved = jax.tree.map(lambda a, b: np.asarray(b - a), before, after)
    assert not any(leaf.any() for leaf in jax.tree.leaves(moved.torso))
    for part, rate in (("head", 0.01), ("further", 0.1)):
        jax.tree.map(
            lambda move, slope, rate=rate: np.testing.assert_allclose(
                move, -rate * slope, rtol=1e-3, atol=1e-6
            ),
            getattr(moved, part),
            getattr(grad, part),
        )


@pytest.mark.parametrize("memory", [0, 3])
def test_every_weight_has_the_label_of_its_part(memory: int) -> None:
    head = ("q", Tower("policy"), "dueling")
    net = build((4,), 2, head, NoOptions(), (5,), jax.random.key(0), memory=memory)
    labels = part_labels(net)
    assert set(jax.tree.leaves(labels.torso)) == {"torso"}
    assert set(jax.tree.leaves(labels.head)) == {"head"}
    assert [set(jax.tree.leaves(each)) for each in labels.further] == [{"policy"}, {"dueling"}]
    if memory:
        assert set(jax.tree.leaves(labels.lstm)) == {"memory"}


def test_the_target_at_s_costs_nothing_where_unread(
    file: Callable[[str], Path], small_job: Callable[..., Spec], catch: Dataset
) -> None:
    """The traced update of a loss that reads it has one more network, that of another has not."""

    def products(source: str) -> int:
        program, items, member, store, _ = loop(file(source), small_job, catch)
        state = program.init(member_keys(0)[0])
        text = str(jax.make_jaxpr(lambda s: gradient_at(program, items, member, store, s))(state))
        return text.count("dot_general")

    unread = """
def loss(views, batch, config, options, td, key):
    q = ops.select(views.now.q, batch.action)
    return td(q, batch.reward, batch.discount, jnp.max(views.target.q, axis=-1)), {}
"""
    read = unread.replace("views.target.q", "(views.target.q + views.target_now.q)")
    layers = 2  # one hidden layer and the head
    assert products(read) == products(unread) + layers


LAMBDA = '''
BOOTSTRAP = "pair"


def loss(views, batch, config, options, td, key):
    """Q(s_t, a_t) → G_t = r_t + γ_t ((1 − λ) Q'_{t+1} + λ G_{t+1}), cut where nothing follows."""
    lam = 0.7
    next_q = batch.in_time(ops.select(views.target.q, batch.next_action))
    reward, discount = batch.in_time(batch.reward), batch.in_time(batch.discount)

    def back(later, step):
        reward, discount, next_q, follows = step
        mixed = jnp.where(follows, (1 - lam) * next_q + lam * later, next_q)
        goal = reward + discount * mixed
        return goal, goal

    steps = (reward, discount, next_q, batch.follows)
    goal = jax.lax.scan(back, jnp.zeros_like(next_q[0]), steps, reverse=True)[1]
    goal = jax.lax.stop_gradient(goal).reshape(-1)
    q = ops.select(views.now.q, batch.action)
    return (q - goal) ** 2, {"goal": goal}
'''


@pytest.mark.parametrize("plan", [{}, {"sequence": 5, "burn_in": 2}], ids=["episodes", "windows"])
def test_lambda_returns_equal_a_slow_reference(
    plan: dict[str, int], file: Callable[[str], Path]
) -> None:
    data = dataset()
    path = str(file(LAMBDA))
    table, program, _, config = program_for(path, data, 2, n_step=1, rescale=False, **plan)
    member = sequence_member(program, config, table)
    columns, items = table.columns[0], table.items
    index = np.arange(min(3, columns.count))
    picked = jax.tree.map(jnp.asarray, columns.pick(index))
    online, target = (program.unravel(program.init(jax.random.key(seed)).params) for seed in (0, 1))
    keys = jax.random.split(jax.random.key(2), 3)
    views = items.views(online, target, picked, keys)
    batch = items.batch(picked, member.g_scale)
    _, metrics = program.algorithm.loss(
        views, batch, member.config, program.options, ops.TD(), keys[0]
    )
    found = np.asarray(batch.in_time(metrics["goal"]))
    next_q = np.asarray(batch.in_time(ops.select(views.target.q, batch.next_action)))
    weight = np.asarray(batch.in_time(batch.weight))
    burn_in = columns.plan.burn_in
    trained = 0
    finals = set((data.offsets[1:] - 1).tolist())
    for item, (first, low, high) in enumerate(columns.items[index].tolist()):
        goal = None  # of the decision after this one
        for step in reversed(range(len(found))):
            row = first + burn_in + step
            if not weight[step, item]:
                goal = None
                continue
            trained += 1
            assert low <= row < high
            episode = int(np.searchsorted(data.offsets, row, side="right")) - 1
            over = data.terminated[episode] and row + 1 in finals
            later = next_q[step, item]
            mixed = later if goal is None else 0.3 * later + 0.7 * goal
            goal = float(data.reward[row]) + (0.0 if over else 0.9 * mixed)
            np.testing.assert_allclose(found[step, item], goal, rtol=1e-5)
            if row in set(data.offsets.tolist()):
                goal = None  # the row before is of another episode
    assert trained > 5


def test_time_order_needs_sequences(
    file: Callable[[str], Path], small_job: Callable[..., Spec], catch: Dataset, tmp_path: Path
) -> None:
    job = small_job(str(file(LAMBDA)), PLAN)
    with pytest.raises(ValueError, match=r"time order.*--memory"):
        train_members([job], [catch], [tmp_path / "run"])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('HEAD = "v"\n', "unknown head 'v'"),
        ("HEAD = 3\n", "a head is a name or a class of equinox.Module; got 3"),
        (V_HEAD + "\nHEAD = V\n", "needs a head that returns q"),
        ('optimiser = "adan"\n', "unknown optimiser 'adan'. Did you mean 'adam'?"),
    ],
)
def test_parts_that_cannot_be_used_are_refused(
    source: str,
    words: str,
    file: Callable[[str], Path],
    small_job: Callable[..., Spec],
    catch: Dataset,
    tmp_path: Path,
) -> None:
    job = small_job(str(file(source)), PLAN)
    with pytest.raises(ValueError, match=words):
        train_members([job], [catch], [tmp_path / "run"])


def test_polyak_moves_the_target_at_every_update(
    file: Callable[[str], Path], small_job: Callable[..., Spec], catch: Dataset
) -> None:
    program, _, _, _, train = loop(file(""), small_job, catch, polyak=0.05)
    state = program.init(member_keys(0)[0])
    target = np.asarray(state.target)
    for step in range(1, 10):
        state = train(state, step)
        target = 0.95 * target + 0.05 * np.asarray(state.params)
        np.testing.assert_allclose(state.target, target, rtol=1e-5, atol=1e-7)
    assert not np.allclose(state.target, state.params)
    whole = train(program.init(member_keys(0)[0]), 9)
    np.testing.assert_allclose(whole.target, state.target, rtol=1e-5, atol=1e-7)


def test_members_of_different_polyak_are_different_programs(small_job: Callable[..., Spec]) -> None:
    one, two = (small_job("dqn", {"polyak": tau}) for tau in (0.0, 0.01))
    assert one.program != two.program
    assert one.id == small_job("dqn").id != two.id
    with pytest.raises(ValueError, match=r"polyak must lie in \[0, 1\]; got 2"):
        small_job("dqn", {"polyak": 2})
