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
from rbve.data.manifest import read_facts
from rbve.data.minari import spaces
from rbve.files import read_json

METADATA = "metadata.json"
HDF5_FILE = "main_data.hdf5"
_VERSION = "0.5.4"  # of minari, whose layout this is
_SCHEMA = 1  # of our own entry in the metadata
# Columns Minari has no place for, by their names among an episode's infos (T+1 rows each).
INFOS = {"legal": "action_mask", "executed": "executed_action", "propensity": "propensity"}
# Facts of an episode Minari has no place for, kept where they are not what they usually are; the
# next action is that of a fragment.
FACTS = ("rbve_next_action", "rbve_complete", "rbve_final_observed", "rbve_episode_return")
COLUMNS = ("actions", "rewards", "terminations", "truncations")  # with one entry per decision


class Raw(NamedTuple):
    """An episode as it is stored: T+1 observations, T of the rest."""

    observations: list[np.ndarray]  # one (T+1, *shape) per leaf
    columns: dict[str, np.ndarray]  # COLUMNS
    infos: dict[str, np.ndarray]  # those of INFOS there are, (T+1, ...)
    facts: dict[str, Any]  # those of FACTS there are


@dataclass(frozen=True)
class Layout:
    folder: Path
    data_format: str
    episodes: int
    first_action: int
    leaves: tuple[spaces.Leaf, ...]
    ours: bool  # written by this library
    jpeg: bool  # frames went through JPEG
    actions: tuple[str, ...]
    features: Features | None
    columns: tuple[str, ...]  # optional columns to look for
    provenance: dict[str, Any]

    @property
    def metadata(self) -> Path:
        return self.folder / METADATA

    def check_count(self, held: int, where: Path) -> None:
        if held != self.episodes:
            raise ValueError(
                f"{where}: holds {held} episodes, and {self.metadata} says {self.episodes}; one of "
                "them is damaged"
            )


def data_folder(path: Path) -> Path | None:
    """The folder of metadata and data: the one given, `data` in it, or the one of a file given."""
    if path.name == HDF5_FILE:
        path = path.parent
    for folder in (path / "data", path):
        data = (folder / HDF5_FILE).is_file() or (folder / "0").is_dir()
        if data and (folder / METADATA).is_file():
            return folder
    return None


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
    facts: dict[str, Any] = {
        "actions": tuple(str(first + index) for index in range(count)),
        "features": spaces.features(leaves),
        "columns": ("legal",),
    }
    if kept is None:
        facts["provenance"] = _origin(content, folder)
    else:
        facts = _kept_facts(kept, count, str(file))
    default = "hdf5" if (folder / HDF5_FILE).is_file() else "arrow"
    jpeg = content.get("jpeg_encoding", True) is True and any(leaf.image for leaf in leaves)
    data_format = str(content.get("data_format", default))
    return Layout(folder, data_format, episodes, first, leaves, kept is not None, jpeg, **facts)


def _kept_facts(kept: Any, count: int, where: str) -> dict[str, Any]:
    """What a dataset that this library wrote says of itself."""
    damaged = ValueError(f"{where}: the entry 'rbve' is damaged; remove it to read what is left")
    facts = read_facts(kept, where, damaged)
    columns = kept.get("columns")
    if kept.get("schema") != _SCHEMA or len(facts["actions"]) != count:
        raise damaged
    if not isinstance(columns, list) or not all(str(name) in OPTIONAL_COLUMNS for name in columns):
        raise damaged
    return {**facts, "columns": tuple(columns)}


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
