"""d3rlpy's replay buffer as it dumps it (version 2): one HDF5 file, read only.

For every episode i the file has observations_i, actions_i, rewards_i (T rows each) and
terminated_i. There is no final observation: its row repeats the last one and says so. Nor is
there an action set: it is taken to be 0 to the largest action seen.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rbve.data.dataset import NO_ACTION, Episode
from rbve.data.hdf5 import Group, is_hdf5, opened
from rbve.data.source import Source, gather

_MOST_ACTIONS = 1 << 16  # ids beyond are taken for damage
_DUMP = ("version", "columns", "num_episodes")
_VERSION_1 = ("observations", "actions", "rewards", "terminals")


def recognises(path: Path) -> bool:
    if path.suffix not in (".h5", ".hdf5") or not is_hdf5(path):
        return False
    try:
        with opened(path) as file:
            return all(map(file.has, _DUMP)) or all(map(file.has, _VERSION_1))
    except ValueError:  # damaged, as read() will say
        return True


def read(path: Path) -> Source:
    if not is_hdf5(path):
        raise ValueError(f"{path}: not an HDF5 file, so not a replay buffer of d3rlpy")
    with opened(path) as file:
        episodes, version = _check_kind(file, path)
        ids = [np.unique(_action_ids(file, index, path)) for index in range(episodes)]
    seen = set(np.concatenate(ids).tolist())
    actions = tuple(map(str, range(max(seen) + 1)))
    missing = [name for action, name in enumerate(actions) if action not in seen]
    provenance = {"source": path.name, "format": "d3rlpy", "version": version}
    source = gather(_episodes_of(path, episodes), path, actions, provenance, episodes)
    source.notes.append(
        f"{path}: d3rlpy keeps no final observation, so the last decision of a truncated episode "
        "counts in returns and cannot be bootstrapped from"
    )
    if missing:
        source.notes.append(
            f"{path}: the action set is taken to be 0 to {max(seen)}, the largest seen; "
            f"never seen: {', '.join(missing[:20])}{' ...' if len(missing) > 20 else ''}"
        )
    return source


def _check_kind(file: Group, path: Path) -> tuple[int, str]:
    """(episodes, version) of a dump that can be read."""
    if not all(map(file.has, _DUMP)):
        if all(map(file.has, _VERSION_1)):
            raise ValueError(
                f"{path}: a dataset of d3rlpy 1; load it with d3rlpy.dataset.load_v1 of d3rlpy 2, "
                "put the episodes into a ReplayBuffer and dump that"
            )
        raise ValueError(f"{path}: lacks 'version', 'columns' or 'num_episodes' of a d3rlpy dump")
    version = b"".join(file.column("version").blobs()).decode("ascii", "replace")
    if not version.startswith("2."):
        raise ValueError(f"{path}: a dump of version {version[:20]!r}; this library reads 2.x")
    count = file.numbers("num_episodes")
    if count.shape != () or count.dtype.kind not in "iu" or count < 1:
        raise ValueError(f"{path}: 'num_episodes' is no count; the buffer is empty or damaged")
    return int(count), version


def _action_ids(file: Group, index: int, path: Path) -> np.ndarray:
    where = f"{path}: episode {index}"
    values = file.numbers(f"actions_{index}")
    rows = len(values) if values.ndim else 0
    if rows < 1:
        raise ValueError(f"{where}: an episode needs at least one decision; got none")
    if values.shape not in ((rows,), (rows, 1)):
        raise ValueError(
            f"{where}: actions have shape {values.shape[1:]}; this library learns one discrete "
            "action a step"
        )
    values = values.reshape(rows)
    # d3rlpy takes whole floats for discrete actions, and so do we.
    with np.errstate(invalid="ignore"):
        wrong = ~((values >= 0) & (values < _MOST_ACTIONS) & (values % 1 == 0))
    for step in np.flatnonzero(wrong):
        raise ValueError(
            f"{where}, step {step}: action {values[step]}; discrete actions are 0, 1, 2, ... "
            "(continuous ones cannot be learned here)"
        )
    return values.astype(np.int64)


def _episodes_of(path: Path, episodes: int) -> Iterator[Episode]:
    with opened(path) as file:
        for index in range(episodes):
            where = f"{path}: episode {index}"
            if file.has(f"observations_{index}_0"):
                raise ValueError(
                    f"{where}: observations are tuples of arrays; only one array a step can be "
                    "read, so join them before the dump"
                )
            action = _action_ids(file, index, path)
            steps = len(action)
            obs = file.numbers(f"observations_{index}")
            if obs.ndim < 1 or len(obs) != steps:
                raise ValueError(f"{where}: {steps} actions and observations of shape {obs.shape}")
            reward = file.numbers(f"rewards_{index}")
            if reward.shape not in ((steps,), (steps, 1)):
                raise ValueError(f"{where}: {steps} actions and rewards of shape {reward.shape}")
            ended = file.numbers(f"terminated_{index}")
            if ended.shape != () or ended.dtype.kind not in "biu":
                raise ValueError(f"{where}: 'terminated' is {ended.dtype} of {ended.shape}")
            with np.errstate(over="ignore"):  # infinite where float32 cannot hold it, and refused
                reward = reward.reshape(steps).astype(np.float32)
            yield Episode(
                obs=np.concatenate([obs, obs[-1:]]),
                action=np.append(action, NO_ACTION),
                reward=np.append(reward, np.float32(0)),
                terminated=bool(ended),
                final_observed=False,
            )
