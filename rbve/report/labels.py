"""Words and colours of the report: methods, settings, kinds of data, reference returns."""

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from rbve.rows import Run, recording_of

# Display name and colour by algorithm, in the order of tables and figures. R-BVE alone is red;
# the others come from a palette that stays apart under colour blindness (Okabe-Ito, Tol).
METHODS: dict[str, tuple[str, str]] = {
    "rbve": ("R-BVE", "#D62410"),
    "bve": ("BVE", "#E69F00"),
    "dqn": ("DDQN", "#0072B2"),
    "rdqn": ("R-DQN", "#332288"),
    "cql": ("CQL", "#009E73"),
    "rem": ("REM", "#AA4499"),
    "bcq": ("BCQ", "#117733"),
    "iqn": ("IQN", "#56B4E9"),
    "bc": ("BC", "#777777"),
    "filtered_bc": ("filtered BC", "#222222"),
    "mc": ("MC", "#8C6D1F"),
    # Not compared in the paper; the pages of its studies say so (BEYOND).
    "iql": ("IQL", "#CC6677"),
    "crr": ("CRR", "#88CCEE"),
    "qr_cql": ("QR-DQN with CQL", "#66A61E"),
    "munchausen": ("M-DQN", "#7570B3"),
}
BEYOND = {"iql", "crr", "qr_cql", "munchausen"}
WITH_MEMORY = {"dqn": "R2D2", "rdqn": "R-R2D2"}  # the same losses, of a network with memory
EMPHASISED = "rbve"
OTHER_COLOURS = ("#882255", "#44AA99", "#6A5ACD", "#999933")
_RAMP = ("#0d0887", "#7e03a8", "#cc4778", "#f89540")  # for the settings of a lone algorithm

_SIGNS = {"lam": "λ", "nu": "ν", "alpha": "α", "beta": "β", "tau": "τ", "kappa": "κ", "gamma": "γ"}
_SIGNS |= {"learning_rate": "lr", "n_step": "n-step", "target_period": "target period"}

REFERENCES = {
    "behaviour_return": "behaviour (data mean)",
    "best_return": "best episode in data",
    "random_return": "random",
    "reference_return": "online reference",
}
CLIPPED = "behaviour, best in data (rewards clipped)"  # not known on the scale of the others
SHORT_REFERENCES = REFERENCES | {
    "behaviour_return": "behaviour mean",
    "best_return": "best in data",
}
PROXY = "public DQN (proxy)"  # what stands in for the online agent's best on Atari


def env_of(run: Run) -> str | None:
    return run.field("env") or run.facts.get("env")


def has_memory(run: Run) -> bool:
    return bool(run.field("memory"))


def _recording_label(recording: Mapping[str, Any]) -> str:
    """'noise 0.25 · script ε 0.1'; '' for an online DQN without noise."""
    labels = [f"noise {_brief(recording['noise'])}"] if recording.get("noise") else []
    if (behaviour := recording.get("behaviour")) != "online dqn":
        epsilon = recording.get("epsilon")
        acts = epsilon is not None and behaviour != "uniform"
        labels.append(f"{behaviour} ε {_brief(epsilon)}" if acts else str(behaviour))
    if recording.get("keep") not in (None, 1.0):
        labels.append(f"{100 * recording['keep']:g}% recorded")
    return " · ".join(labels)


def problem_label(run: Run) -> str:
    """Environment, kind of data, what is kept of it: 'cartpole · 1% of episodes · below mean'."""
    data, env, recording = run.spec.get("data", {}), env_of(run), recording_of(run.spec, run.facts)
    if recording is None:
        labels = [env or "", PurePath(str(data.get("path", ""))).name]
    else:
        labels = [env or recording.get("env") or "", _recording_label(recording)]
    if data.get("keep", 1.0) != 1.0:
        labels.append(f"{100 * data['keep']:g}% of episodes")
    if data.get("side", "all") != "all":
        labels.append(f"{data['side']} mean")
    if data.get("action", "chosen") != "chosen":
        labels.append(f"{data['action']} actions")
    if env is None:
        labels.append("data only")
    return " · ".join(one_line(label) for label in labels if label)


def method_name(name: str, algorithm: str, settings: Mapping[str, Any], run: Run) -> str:
    if has_memory(run) and algorithm in WITH_MEMORY:
        name = WITH_MEMORY[algorithm]
    elif algorithm == "dqn":
        double = run.spec["settings"].get("double", True)
        name = "DDQN" if double else "DQN"
        settings = {key: value for key, value in settings.items() if key != "double"}
    return one_line(f"{name} {describe(settings)}")


def describe(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{_SIGNS.get(name, name)}={_brief(value)}" for name, value in settings.items())


def _brief(value: Any) -> str:
    if value is None:
        return "default"
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else value
    return f"{value:g}" if isinstance(value, int | float) else json.dumps(value)


def one_line(text: str) -> str:
    """Printable on one line, whatever a path or setting holds."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def natural(text: str) -> list[tuple[int, float, str]]:
    """Sort key with numbers by size."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)", text)
    return [(0, float(part), "") if k % 2 else (1, 0.0, part) for k, part in enumerate(parts)]


def mix(first: str, second: str, share: float) -> str:
    """Colour between two, `share` of the way."""
    pairs = [(int(first[k : k + 2], 16), int(second[k : k + 2], 16)) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def ramp(share: float) -> str:
    place = share * (len(_RAMP) - 1)
    left = min(int(place), len(_RAMP) - 2)
    return mix(_RAMP[left], _RAMP[left + 1], place - left)
