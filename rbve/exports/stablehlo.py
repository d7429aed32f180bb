"""StableHLO by jax.export, with a description in JSON beside it."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve.exports._shipment import Shipment, check_equal
from rbve.files import write_atomically
from rbve.policy.core import shapes

SUFFIX = ".stablehlo"


def write(shipment: Shipment, path: Path) -> None:
    """`path`, which jax.export.deserialize reads, and the same name with .json after it: what goes
    in and comes out, in which order."""
    from jax import export

    policy, program = shipment.policy, shipment.whole()
    names, decider = list(shapes(policy)), shipment.decider()
    outputs = sorted(program.outputs)
    (rows,) = export.symbolic_shape("rows")

    def compute(*values: Any) -> tuple[Any, ...]:
        inputs = dict(zip(names, values, strict=True))
        inputs["obs"], inputs["inside"] = _encoded(shipment, inputs["obs"])
        run = program.bind(jnp, inputs["obs"].shape[0])
        found = run([inputs[name] for name in program.inputs])
        return tuple(found[name] for name in outputs)

    with jax.enable_x64(True):
        own = {**shapes(policy), "obs": (policy.obs_shape, _dtype(shipment))}
        taken = [
            jax.ShapeDtypeStruct((rows, *own[name][0]), np.dtype(own[name][1])) for name in names
        ]
        made = export.export(jax.jit(compute), platforms=("cpu", "cuda", "tpu"))(*taken)
        held = made.serialize()
        again = export.deserialize(held)
        for sample in shipment.samples():
            given = [
                np.asarray(sample[n], each.dtype) for n, each in zip(names, taken, strict=True)
            ]
            found = dict(zip(outputs, map(np.asarray, again.call(*given)), strict=True))
            state = {n: sample[n] for n in sample if n not in ("obs", "legal")}
            mine = decider.step(sample["obs"], sample["legal"], state)[0]
            check_equal(mine, found, str(path))
    content = {
        "kind": "rbve stablehlo",
        "inputs": [
            {"name": n, "shape": ["rows", *own[n][0]], "dtype": each.dtype.name}
            for n, each in zip(names, taken, strict=True)
        ],
        "outputs": outputs,
        "actions": list(policy.actions),
        "features": policy.features and policy.features.to_json(),
        "rules": shipment.rules.to_json(),
        "info": shipment.info(),
    }
    write_atomically(path, bytes(held))
    write_atomically(
        path.with_name(f"{path.name}.json"), (json.dumps(content, indent=1) + "\n").encode()
    )


def _dtype(shipment: Shipment) -> Any:
    if shipment.policy.features is not None:
        return np.float64
    return np.uint8 if shipment.bytes_in else np.float32


def _encoded(shipment: Shipment, obs: Any) -> tuple[Any, Any]:
    features = shipment.policy.features
    inside = jnp.ones(obs.shape[0], bool)
    if features is None:
        seen = obs.astype(jnp.float32)
        return (seen / jnp.float32(255) if obs.dtype == jnp.uint8 else seen), inside
    for index, column in enumerate(features.columns):
        inside &= ~column.far(obs[:, index], jnp)
    return features.encode(obs, jnp), inside
