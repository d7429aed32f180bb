"""One ONNX graph from the columns of a log to decisions."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from rbve.data.features import Features
from rbve.exports import _onnx_columns
from rbve.exports._onnx_nodes import TYPES, Nodes
from rbve.exports._shipment import STATE, Shipment, check_equal
from rbve.files import write_atomically

SUFFIX = ".onnx"
_OPSET, _IR = {"": 18, "ai.onnx.ml": 3}, 9
_OUTPUTS = {
    "action": "string", "index": "int64", "q": "float32", "scores": "float32",
    "probabilities": "float32", "gap": "float32", "supported": "bool", "behaviour": "float32",
    "next_hidden": "float32", "next_cell": "float32",
}  # fmt: skip
_PER_ROW = ("action", "index", "gap", "supported")


def write(shipment: Shipment, path: Path) -> None:
    """Inputs are the columns by name, (rows,), or `observation`; `legal` (rows, actions), all
    legal if it is left out, unless the data had masks; and the state of policies with a memory."""
    onnx, runtime = _packages()
    model = build(onnx, shipment)
    onnx.checker.check_model(model, full_check=True)
    held = model.SerializeToString()
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # it warns of inputs that may be left out
    session = runtime.InferenceSession(held, options, providers=["CPUExecutionProvider"])
    outputs = [each.name for each in session.get_outputs()]
    decider = shipment.decider()
    for sample in shipment.samples():
        state = {name: sample[name] for name in STATE if name in sample}
        mine = decider.step(sample["obs"], sample["legal"], state)[0]
        given = {**_given(shipment, sample["obs"]), "legal": sample["legal"], **state}
        found = dict(zip(outputs, session.run(None, given), strict=True))
        check_equal(mine, found, str(path))
    write_atomically(path, held)


def _packages() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            import onnx
            import onnxruntime
    except ImportError:
        raise ImportError('ONNX needs two packages more: pip install "rbve[onnx]"') from None
    return onnx, onnxruntime


def _given(shipment: Shipment, obs: np.ndarray) -> dict[str, np.ndarray]:
    """Observations as a dataset holds them, as inputs of the graph."""
    features = shipment.policy.features
    if features is None:
        return {"observation": obs}
    given: dict[str, np.ndarray] = {}
    for place, column in enumerate(features.columns):
        values = obs[:, place]
        if column.kind == "category":
            names = np.array([*column.categories, ""], object)
            values = names[np.where(np.isnan(values), -1, values).astype(int)]
        given[column.name] = values
    return given


def build(onnx: Any, shipment: Shipment) -> Any:
    """The model."""
    policy, nodes = shipment.policy, Nodes(onnx)
    helper = onnx.helper
    count = len(policy.actions)
    inputs: list[Any] = []

    def take(name: str, dtype: str, *shape: Any) -> str:
        inputs.append(helper.make_tensor_value_info(name, TYPES[dtype], ["rows", *shape]))
        return name

    if policy.features is not None:
        _refuse_names(policy.features)
        names = {n: take(n, kind) for n, kind in _onnx_columns.taken(policy.features).items()}
        nodes.batch = nodes.add("Shape", [next(iter(names.values()))])
        seen, inside = _onnx_columns.encode(nodes, policy.features, names)
    else:
        kind = "uint8" if shipment.bytes_in else "float32"
        seen, inside = _observation(nodes, take("observation", kind, *policy.obs_shape), kind)
    given = {"obs": seen, "inside": inside, "legal": _legal(nodes, inputs, shipment, onnx)}
    if policy.memory:
        units = policy.decider.units
        given |= {"last_action": take("last_action", "int32")}
        given |= {"last_reward": take("last_reward", "float32")}
        given |= {name: take(name, "float32", units) for name in ("hidden", "cell")}
    made = nodes.program(shipment.whole(), given)
    made["index"] = nodes.cast(made.pop("action"), "int64")
    made["action"] = nodes.add(
        "LabelEncoder", [made["index"]], domain="ai.onnx.ml", keys_int64s=list(range(count)),
        values_strings=list(policy.actions),
    )  # fmt: skip
    outputs = []
    for name, dtype in _OUTPUTS.items():
        if name in made:
            nodes.nodes.append(helper.make_node("Identity", [made[name]], [name]))
            width = policy.decider.units if name.startswith("next_") else count
            shape: list[Any] = ["rows"] if name in _PER_ROW else ["rows", width]
            outputs.append(helper.make_tensor_value_info(name, TYPES[dtype], shape))
    graph = helper.make_graph(nodes.nodes, "policy", inputs, outputs, [*nodes.constants.values()])
    opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSET.items()]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR, producer_name="rbve")
    helper.set_model_props(model, _properties(shipment))
    return model


def _refuse_names(features: Features) -> None:
    taken = {"legal", *STATE, *_OUTPUTS}
    if clash := [name for name in features.names if name in taken]:
        raise ValueError(
            f"the column {clash[0]!r} has the name of another input or output of the graph; rename "
            "it in the log and convert again"
        )


def _observation(nodes: Nodes, name: str, kind: str) -> tuple[str, str]:
    nodes.batch = nodes.add("Shape", [name], start=0, end=1)
    inside = nodes.add("Expand", [nodes.constant([True], np.bool_), nodes.batch])
    if kind != "uint8":
        return name, inside
    return nodes.add("Div", [nodes.cast(name, "float32"), nodes.constant(255, np.float32)]), inside


def _legal(nodes: Nodes, inputs: list[Any], shipment: Shipment, onnx: Any) -> str:
    """An input with a value of its own, which whoever leaves it out takes."""
    count = len(shipment.policy.actions)
    info = onnx.helper.make_tensor_value_info("legal", TYPES["bool"], ["masks", count])
    inputs.append(info)
    if not shipment.policy.masked:
        every = np.ones((1, count), np.bool_)
        nodes.constants["legal"] = onnx.numpy_helper.from_array(every, "legal")
    width = nodes.constant([count], np.int64)
    return nodes.add("Expand", ["legal", nodes.add("Concat", [nodes.batch, width], axis=0)])


def _properties(shipment: Shipment) -> dict[str, str]:
    policy = shipment.policy
    held = {
        "kind": "rbve policy",
        "actions": list(policy.actions),
        "columns": policy.features.to_json() if policy.features is not None else None,
        "obs_shape": list(policy.obs_shape),
        "masked": policy.masked,
        "memory": policy.decider.units,
        "rules": shipment.rules.to_json(),
        **shipment.info(),
    }
    return {f"rbve.{name}": json.dumps(value) for name, value in held.items()}
