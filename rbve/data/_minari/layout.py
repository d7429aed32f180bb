"""What a Minari dataset says about itself: metadata.json, and what lies where.

NAME/data/metadata.json     sizes, spaces, and under "rbve" what Minari has no place for
NAME/data/main_data.hdf5    one group an episode, or
NAME/data/0, 1, ...         one folder an episode, with an Arrow file and a metadata.json
"""

import json
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rbve.data._minari import spaces
from rbve.data.dataset import OPTIONAL_COLUMNS, Dataset
from rbve.data.features import Features
from rbve.data.manifest import NUMBERS, SCHEMA, facts_of, read_facts
from rbve.files import read_json

METADATA = "metadata.json"
HDF5 = "main_data.hdf5"
_VERSION = "0.5.4"  # of minari, whose layout this is
# Columns Minari has no place for, by their names among an episode's infos (T+1 rows each).
INFOS = {"legal": "action_mask", "executed": "executed_action", "propensity": "propensity"}
_ORIGIN = ("dataset_id", "minari_version", "algorithm_name", "author", "code_permalink")


class Layout(NamedTuple):
    folder: Path
    data_format: str
    episodes: int
    first_action: int
    leaves: tuple[spaces.Leaf, ...]
    ours: bool  # written by this library
    jpeg: bool  # frames went through JPEG
    actions: tuple[str, ...]
    features: Features | None
    infos: list[str]  # those of INFOS to look for
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


def folder_of(path: Path) -> Path | None:
    """The folder of metadata and data: the one given, `data` in it, or the one of a file given."""
    if path.name == HDF5:
        path = path.parent
    for folder in (path / "data", path):
        data = (folder / HDF5).is_file() or (folder / "0").is_dir()
        if data and (folder / METADATA).is_file():
            return folder
    return None


def open_layout(path: Path) -> Layout:
    folder = folder_of(path)
    if folder is None:
        raise ValueError(
            f"{path}: no Minari dataset of version 0.5 (a folder `data` with {METADATA} and "
            f"{HDF5} or folders of episodes)"
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
    ours = content.get("rbve") is not None
    columns: Any = ["legal"]
    if ours:  # what a dataset that this library wrote says of itself
        kept = content["rbve"]
        damaged = ValueError(f"{file}: the entry 'rbve' is damaged; remove it to read what is left")
        facts = read_facts(kept, str(file), damaged)
        columns = kept.get("columns")
        if kept.get("schema") != SCHEMA or len(facts["actions"]) != count:
            raise damaged
        if not isinstance(columns, list) or not {*map(str, columns)} <= {*OPTIONAL_COLUMNS}:
            raise damaged
    else:
        facts = {
            "actions": tuple(str(first + index) for index in range(count)),
            "features": spaces.features(leaves),
            "provenance": _origin(content, folder),
        }
    default = "hdf5" if (folder / HDF5).is_file() else "arrow"
    data_format = str(content.get("data_format", default))
    jpeg = content.get("jpeg_encoding", True) is True and any(leaf.image for leaf in leaves)
    infos = [INFOS[name] for name in columns]
    return Layout(folder, data_format, episodes, first, leaves, ours, jpeg, infos=infos, **facts)


def _origin(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Where a dataset of others comes from; rbve.envs decides later if its environment is there."""
    name = folder.parent.name if folder.name == "data" else folder.name
    origin: dict[str, Any] = {"source": name, "format": "minari"}
    origin |= {key: content[key] for key in _ORIGIN if isinstance(content.get(key), str | list)}
    try:
        spec = json.loads(content.get("env_spec"))  # type: ignore[arg-type]
        env = str(spec["id"])
        settings = {
            "kwargs": {k: v for k, v in spec.get("kwargs", {}).items() if k != "render_mode"},
            "max_episode_steps": spec.get("max_episode_steps"),
            "wrappers": [str(each["name"]) for each in spec.get("additional_wrappers", ())],
        }
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return origin
    origin["env_id"] = env
    if ":" not in env:
        origin |= {"env": f"gymnasium:{env}", "env_settings": settings}
    return origin


def describe(part: Dataset, path: Path, data_format: str) -> dict[str, Any]:
    """The metadata of a dataset to be written, its sizes still open."""
    dtype = part.obs.dtype.newbyteorder("<")
    if dtype.str not in NUMBERS:
        raise ValueError(f"{path}: observations are {dtype}; Minari keeps numbers")
    bounds: Any = {"b": (False, True), "f": (-math.inf, math.inf)}.get(dtype.kind)
    bounds = bounds or (np.iinfo(dtype).min, np.iinfo(dtype).max)  # whatever the values
    low, high = (np.full(part.obs_shape, bound, dtype).tolist() for bound in bounds)
    box = {"type": "Box", "dtype": dtype.name, "shape": list(part.obs_shape)}
    discrete = {"type": "Discrete", "dtype": "int64", "start": 0, "n": part.num_actions}
    plain = re.sub(r"[^-\w]", "-", path.name)
    return {
        "total_episodes": 0,
        "total_steps": 0,
        "data_format": data_format,
        "jpeg_encoding": False,  # frames stay exact
        "observation_space": json.dumps({**box, "low": low, "high": high}),
        "action_space": json.dumps(discrete),
        "dataset_id": plain if re.search(r"-v\d+$", plain) else f"{plain}-v0",
        "minari_version": _VERSION,
        "rbve": {
            **facts_of(part),
            "columns": [name for name in OPTIONAL_COLUMNS if getattr(part, name) is not None],
        },
    }
