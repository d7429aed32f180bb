"""Convolutions against the compiler's own and against loops; torsos, their shapes and choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import backend
from rbve.networks import Network, build
from rbve.networks.conv import Conv, Image, Kernel, native, patches_product, window
from rbve.networks.torsos import TORSOS, hidden_for, torso_for
from rbve.networks.torsos.atari import KERNELS as ATARI
from rbve.types import Tower

KEY = jax.random.key(0)
Q_POLICY = ("q", Tower("policy"))
HEADS: tuple[Any, ...] = ("q", "policy", Q_POLICY, "ensemble", "quantile")


@dataclass(frozen=True)
class Choices:
    heads: int = 7
    samples: int = 6
    act_samples: int = 9
    cosines: int = 10


def network(shape: tuple[int, ...], head: Any = "q", torso: str = "auto", seed: int = 0) -> Network:
    make = jax.jit(lambda key: build(shape, 4, head, Choices(), (), key, torso))
    return make(jax.random.key(seed))


@pytest.mark.parametrize(
    ("padding", "sides"), [("SAME", [21, 11, 11]), ("VALID", [20, 9, 7])], ids=str
)
def test_sides_of_the_papers_layers(padding: Any, sides: list[int]) -> None:
    side, found = 84, []
    for kernel in ATARI:
        side, _ = window(side, kernel.side, kernel.stride, padding)
        found.append(side)
    assert found == sides


@pytest.mark.parametrize(
    ("torso", "features"), [("atari", 64 * 11 * 11), ("atari_valid", 64 * 7 * 7)]
)
def test_weights_of_the_papers_torso(torso: str, features: int) -> None:
    net = jax.eval_shape(lambda: network((84, 84, 4), torso=torso))
    assert [layer.weight.shape for layer in net.torso.convolutions] == [
        (8, 8, 4, 32),
        (4, 4, 32, 64),
        (3, 3, 64, 64),
    ]
    assert [layer.weight.shape for layer in net.torso.dense.layers] == [(512, features)]


def test_weights_of_the_board_torso() -> None:
    net = jax.eval_shape(lambda: network((10, 10, 6)))
    assert [layer.weight.shape for layer in net.torso.convolutions] == [(3, 3, 6, 16)]
    assert [layer.weight.shape for layer in net.torso.dense.layers] == [(128, 16 * 8 * 8)]


# (height, width, channels, kernel): the paper's, then sides that leave pixels over.
CASES = [
    (84, 84, 4, ATARI[0]),
    (21, 21, 32, ATARI[1]),
    (11, 11, 64, ATARI[2]),
    (10, 10, 5, Kernel(16, 3, 1)),
    (13, 9, 2, Kernel(3, 4, 2)),
    (17, 12, 3, Kernel(5, 5, 3)),  # a stride that does not divide the side
    (9, 11, 2, Kernel(3, 2, 3)),  # a stride beyond the side
    (8, 8, 3, Kernel(4, 8, 4)),
]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    "case",
    [*(pytest.param(case, marks=pytest.mark.slow) for case in CASES[:3]), *CASES[3:]],
    ids=str,
)
def test_product_of_patches_equals_the_native_convolution(
    case: tuple[int, int, int, Kernel], padding: Any
) -> None:
    height, width, channels, kernel = case
    key_x, key_w, key_y = jax.random.split(KEY, 3)
    x = jax.random.normal(key_x, (channels, height, width, 3))
    weight = jax.random.normal(key_w, (kernel.side, kernel.side, channels, kernel.filters))
    weight /= np.sqrt(weight[..., 0].size)
    expected = jax.lax.conv_general_dilated(
        jnp.transpose(x, (3, 1, 2, 0)),
        weight,
        (kernel.stride, kernel.stride),
        padding,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    ).transpose(3, 1, 2, 0)
    pull = jax.random.normal(key_y, expected.shape)
    found = {}
    for form in (native, patches_product):

        @jax.jit
        def run(x: jax.Array, weight: jax.Array, form: Any = form) -> Any:
            def convolve(x: jax.Array, weight: jax.Array) -> jax.Array:
                return form(x, weight, kernel.stride, padding)

            value, back = jax.vjp(convolve, x, weight)
            return value, back(pull)

        value, found[form] = run(x, weight)
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-4)
    for ours, theirs in zip(found[patches_product], found[native], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_convolution_against_loops(padding: Any) -> None:
    kernel = Kernel(3, 4, 2)
    layer = Conv(2, kernel, padding, KEY)
    layer = jax.tree.map(lambda leaf: leaf + 0.1, layer)  # a bias that matters
    image = np.asarray(jax.random.normal(KEY, (2, 7, 6)), np.float64)
    # Before, behind: 7 rows take 4 windows reaching row 10, 6 columns 3 windows reaching 8.
    zeros = ((0, 0), (1, 2), (1, 1)) if padding == "SAME" else ((0, 0), (0, 0), (0, 0))
    padded = np.pad(image, zeros)
    rows, columns = (4, 3) if padding == "SAME" else (2, 2)
    weight, bias = np.asarray(layer.weight, np.float64), np.asarray(layer.bias)
    expected = np.zeros((3, rows, columns))
    for out in range(3):
        for i in range(rows):
            for j in range(columns):
                patch = padded[:, 2 * i : 2 * i + 4, 2 * j : 2 * j + 4]
                expected[out, i, j] = (
                    np.sum(patch * weight[:, :, :, out].transpose(2, 0, 1)) + bias[out]
                )
    found = layer(jnp.asarray(image, jnp.float32)[..., None])
    np.testing.assert_allclose(found[..., 0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("torso", [name for name in TORSOS if name not in ("auto", "mlp")])
def test_networks_agree_across_platforms(torso: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = (10, 10, 4) if torso == "board" else (44, 40, 4)
    net = network(shape, torso=torso)
    obs = jax.random.randint(KEY, (3, *shape), 0, 256).astype(jnp.uint8)
    found = []
    for platform in ("cpu", "gpu"):
        monkeypatch.setattr(backend, "platform", lambda platform=platform: platform)

        def value(net: Network) -> jax.Array:
            return jnp.sum(net(obs, KEY).q ** 2)

        program = str(jax.make_jaxpr(value)(net))
        assert ("conv_general_dilated" in program) == (platform == "gpu")
        found.append(jax.jit(jax.value_and_grad(value))(net))
    for ours, theirs in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_the_platform_is_that_of_the_default_device() -> None:
    assert backend.platform() == "cpu"
    with jax.default_device(jax.devices("cpu")[-1]):
        assert backend.platform() == "cpu"


@pytest.mark.parametrize(
    ("shape", "head"),
    [*(((10, 10, 4), head) for head in HEADS), ((40, 36, 3), "q"), ((40, 36), "q")],
    ids=str,
)
def test_every_head_works_on_images(shape: tuple[int, ...], head: Any) -> None:
    net = network(shape, head)
    assert isinstance(net.torso, Image)
    say = jax.jit(lambda net, obs: net(obs, KEY))
    obs = jax.random.randint(KEY, (5, *shape), 0, 256).astype(jnp.uint8)
    together = say(net, obs)
    assert together.q.shape == (5, 4)
    scaled = say(net, obs.astype(jnp.float32) / 255)
    np.testing.assert_allclose(together.q, scaled.q, rtol=1e-6)
    assert (together.logits is not None) == (head in ("policy", Q_POLICY))
    if head != "quantile":  # which samples levels of its own for every state
        alone = say(net, obs[3:4])
        np.testing.assert_allclose(alone.q[0], together.q[3], rtol=1e-4, atol=1e-5)


def test_behaviour_has_convolutions_of_its_own() -> None:
    net = network((10, 10, 2), Q_POLICY)
    obs = jax.random.normal(KEY, (3, 10, 10, 2))
    pushed = jax.grad(lambda n: jnp.sum(n(obs, KEY).logits))(net)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves((pushed.torso, pushed.head)))
    assert (pushed.further[0][0].convolutions[0].weight != 0).any()


def test_weights_depend_on_the_key_and_start_at_the_right_size() -> None:
    one, two = (network((84, 84, 4), seed=seed) for seed in (0, 1))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        if a.ndim > 1:
            assert (a != b).all()
    unit = np.asarray(one.torso.convolutions[2].weight) * np.sqrt(3 * 3 * 64)
    assert abs(unit.std() - 1) < 0.01


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((6,), "mlp"),
        ((1, 6), "mlp"),
        ((10, 5), "mlp"),  # bsuite's catch
        ((28, 28), "mlp"),  # bsuite's mnist
        ((1, 6, 1), "mlp"),
        ((3, 3, 4), "mlp"),  # MiniGrid's Memory
        ((4, 9, 1), "mlp"),
        ((5, 5, 3), "board"),
        ((10, 10, 4), "board"),
        ((16, 16, 1), "board"),
        ((17, 10, 1), "atari"),
        ((84, 84, 4), "atari"),
        ((72, 96, 3), "atari"),
        ((84, 84), "atari"),
        ((2, 3, 4, 5), "mlp"),
    ],
    ids=str,
)
def test_automatic_choice(shape: tuple[int, ...], expected: str) -> None:
    assert torso_for("auto", shape) == expected
    assert torso_for("mlp", shape) == "mlp"


def test_widths_of_dense_layers() -> None:
    assert hidden_for("mlp", ()) == (56, 56)
    assert hidden_for("atari", ()) == (512,)
    assert hidden_for("board", ()) == (128,)
    assert hidden_for("board", [7, 9]) == (7, 9)


def test_wrong_torsos_are_refused() -> None:
    with pytest.raises(
        ValueError, match="torso must be one of auto, atari, atari_valid, board, mlp; got"
    ):
        torso_for("resnet", (84, 84, 4))
    with pytest.raises(ValueError, match=r"torso atari takes images.*\(6,\); choose mlp"):
        torso_for("atari", (6,))
    with pytest.raises(ValueError, match="too small"):
        network((20, 20, 4), torso="atari_valid")
