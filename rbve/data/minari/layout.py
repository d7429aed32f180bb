"""What a Minari dataset says about itself: metadata.json, and what lies where.

NAME/data/metadata.json     sizes, spaces, and under "rbve" what Minari has no place for
NAME/data/main_data.hdf5    one group an episode, or
NAME/data/0, 1, ...         one folder an episode, with an Arrow file and a metadata.json
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.episode import OPTIONAL_COLUMNS
from rbve.data.features import Features
from rbve.data.manifest import check_provenance
from rbve.data.minari import spaces
from rbve.files import read_json

METADATA = "metadata.json"
HDF5_FILE = "main_data.hdf5"
_VERSION = "0.5.4"  # of minari, whose layout this is
_SCHEMA = 1  # of our own entry in the metadata
# Columns Minari has no place for, by their names among an episode's infos (T+1 rows each).
INFOS = {"legal": "action_mask", "executed": "executed_action", "propensity": "propensity"}
# Facts of an episode Minari has no place for, kept where they are not what they usually are.
NEXT_ACTION = "rbve_next_action"  # of a fragment
COMPLETE = "rbve_complete"
FINAL_OBSERVED = "rbve_final_observed"
EPISODE_RETURN = "rbve_episode_return"
FACTS = (NEXT_ACTION, COMPLETE, FINAL_OBSERVED, EPISODE_RETURN)


class Raw(NamedTuple):
    """An episode as it is stored: T+1 observations, T of the rest."""

    observations: list[np.ndarray]  # one (T+1, *shape) per leaf
    actions: np.ndarray
    rewards: np.ndarray
    terminations: np.ndarray
    truncations: np.ndarray
    infos: dict[str, np.ndarray]  # those of INFOS there are, (T+1, ...)
    facts: dict[str, Any]  # those of FACTS there are


@dataclass(frozen=True)
class Layout:
    folder: Path
    data_format: str
    episodes: int
    first_action: int
    actions: tuple[str, ...]
    leaves: tuple[spaces.Leaf, ...]
    features: Features | None
    columns: tuple[str, ...]  # optional columns to look for
    ours: bool  # written by this library
    jpeg: bool  # frames went through JPEG
    provenance: dict[str, Any]

    @property
    def metadata(self) -> Path:
        return self.folder / METADATA


def data_folder(path: Path) -> Path | None:
    """The folder of metadata and data: the one given, `data` in it, or the one of a file given."""
    if path.name == HDF5_FILE:
        path = path.parent
    for folder in (path / "data", path):
        if (folder / METADATA).is_file() and (is_hdf5_layout(folder) or is_arrow_layout(folder)):
            return folder
    return None


def is_hdf5_layout(folder: Path) -> bool:
    return (folder / HDF5_FILE).is_file()


def is_arrow_layout(folder: Path) -> bool:
    return (folder / "0").is_dir()


def open_layout(path: Path) -> Layout:
    folder = data_folder(path)
    if folder is None:
        raise ValueError(
            f"{path}: no Minari dataset of version 0.5 (a folder `data` with {METADATA} and "
            f"{HDF5_FILE} or folders of episodes)"
        )
    file = folder / METADATA
    content = read_json(file)
    if not isinstance(content, dict):
        raise ValueError(f"{file}: not the metadata of a Minari dataset")
    for name in ("action_space", "observation_space"):
        if name not in content:
            raise ValueError(f"{file}: lacks {name!r}; load and save the dataset with minari 0.5")
    episodes = content.get("total_episodes")
    if type(episodes) is not int or episodes < 1:
        raise ValueError(f"{file}: {episodes} episodes; the dataset is empty or damaged")
    first, count = spaces.discrete(content["action_space"], f"{file}: the action space")
    leaves = spaces.leaves(content["observation_space"], f"{file}: the observation space")
    kept = content.get("rbve")
    if kept is None:
        actions = tuple(str(first + index) for index in range(count))
        held: Any = (actions, spaces.features(leaves), ("legal",), _origin(content, folder))
    else:
        held = _kept_facts(kept, count, str(file))
    actions, features, columns, provenance = held
    return Layout(
        folder,
        str(content.get("data_format", "hdf5" if is_hdf5_layout(folder) else "arrow")),
        episodes,
        first,
        actions,
        leaves,
        features,
        columns,
        kept is not None,
        content.get("jpeg_encoding", True) is True and any(leaf.image for leaf in leaves),
        provenance,
    )


def _kept_facts(kept: Any, count: int, where: str) -> tuple[Any, ...]:
    """(actions, features, columns, provenance) of a dataset this library wrote."""
    damaged = ValueError(f"{where}: the entry 'rbve' is damaged; remove it to read what is left")
    if not isinstance(kept, dict) or kept.get("schema") != _SCHEMA:
        raise damaged
    actions, columns, provenance = (kept.get(name) for name in ("actions", "columns", "provenance"))
    if not isinstance(actions, list) or not all(type(name) is str for name in actions):
        raise damaged
    if len(actions) != count or len(set(actions)) != count:
        raise damaged
    if not isinstance(columns, list) or not all(str(name) in OPTIONAL_COLUMNS for name in columns):
        raise damaged
    if not isinstance(provenance, dict):
        raise damaged
    check_provenance(provenance, where)
    features = None
    if "features" in kept:
        features = Features.from_json(kept["features"], where)
    return tuple(actions), features, tuple(columns), provenance


def _origin(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Where a dataset of others comes from, as it says itself."""
    name = folder.parent.name if folder.name == "data" else folder.name
    origin: dict[str, Any] = {"source": name, "format": "minari"}
    for key in ("dataset_id", "minari_version", "algorithm_name", "author", "code_permalink"):
        if isinstance(content.get(key), str | list):
            origin[key] = content[key]
    return {**origin, **_made_in(content.get("env_spec"))}


def _made_in(spec: Any) -> dict[str, Any]:
    """The environment, where it is one of Gymnasium's by a plain id, and what it was made with.

    `rbve.envs.named_in_file` decides later whether it can be had.
    """
    try:
        told = json.loads(spec)
        env = str(told["id"])
        kwargs = {k: v for k, v in told.get("kwargs", {}).items() if k != "render_mode"}
        wrappers = [str(each["name"]) for each in told.get("additional_wrappers", ())]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}
    limit = told.get("max_episode_steps")
    settings = {"kwargs": kwargs, "max_episode_steps": limit, "wrappers": wrappers}
    facts: dict[str, Any] = {"env_id": env}
    if ":" not in env:
        facts |= {"env": f"gymnasium:{env}", "env_settings": settings}
    return facts


def describe(part: Dataset, dtype: np.dtype, name: str, data_format: str) -> dict[str, Any]:
    """The metadata of a dataset to be written, its sizes still open."""
    plain = re.sub(r"[^-\w]", "-", name)
    return {
        "total_episodes": 0,
        "total_steps": 0,
        "data_format": data_format,
        "jpeg_encoding": False,  # frames stay exact
        "observation_space": spaces.box(part.obs_shape, dtype),
        "action_space": json.dumps(
            {"type": "Discrete", "dtype": "int64", "start": 0, "n": part.num_actions}
        ),
        "dataset_id": plain if re.search(r"-v\d+$", plain) else f"{plain}-v0",
        "minari_version": _VERSION,
        "rbve": {
            "schema": _SCHEMA,
            "actions": list(part.actions),
            "columns": [name for name in OPTIONAL_COLUMNS if getattr(part, name) is not None],
            "provenance": part.provenance,
            **({} if part.features is None else {"features": part.features.to_json()}),
        },
    }
