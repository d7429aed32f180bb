"""Minari dataset: a folder whose episodes lie in one HDF5 file.

An episode there has T+1 observations and T of everything else; `action_mask` among its infos says
which actions were legal. What Minari has no place for (executed actions, propensities, names,
fragments, provenance) it keeps for us as infos, attributes and metadata. It stores large frames
as JPEG unless told otherwise; this library writes them exact.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rbve.data._minari import spaces
from rbve.data._minari.layout import HDF5, INFOS, METADATA, Layout, describe, folder_of, open_layout
from rbve.data._minari.stores import COLUMNS, FACTS, READERS, WRITERS, Raw
from rbve.data.dataset import NO_ACTION, Episode
from rbve.data.episode import return_of
from rbve.data.hdf5 import require_h5py
from rbve.data.source import Source, for_writing, gather
from rbve.files import refuse_to_replace, replacing, write_json

_NEXT_ACTION, _COMPLETE, _FINAL_OBSERVED, _EPISODE_RETURN = FACTS


def recognises(path: Path) -> bool:
    folder = folder_of(path)
    return folder is not None and (folder / HDF5).is_file()


def read(path: Path) -> Source:
    layout = open_layout(path)
    if layout.data_format not in READERS:
        raise ValueError(
            f"{layout.metadata}: data format {layout.data_format!r}; known: {', '.join(READERS)}"
        )
    if layout.data_format == "hdf5":
        require_h5py()
    notes: list[str] = []
    if layout.jpeg:
        notes.append(f"{path}: frames are stored as JPEG, so close to what was seen, not it")
    episodes = (
        _from_raw(raw, layout, f"{layout.folder}: episode {index}", notes)
        for index, raw in enumerate(READERS[layout.data_format](layout))
    )
    facts = (layout.actions, layout.provenance, layout.episodes, layout.features)
    return replace(gather(episodes, layout.folder, *facts), notes=notes)


def _from_raw(raw: Raw, layout: Layout, where: str, notes: list[str]) -> Episode:
    """`where` opens messages; what was assumed goes into `notes`, once."""
    steps = len(np.atleast_1d(raw.columns["actions"]))
    if steps < 1:
        raise ValueError(f"{where}: an episode needs at least one decision; got none")
    last = raw.facts.get(_NEXT_ACTION, NO_ACTION)
    if type(last) is not int or not NO_ACTION <= last < len(layout.actions):
        raise ValueError(f"{where}: next action {last}, which is not one of the actions; damaged")
    actions, rewards, terminations, truncations = (
        _flat(raw.columns[name], name, kinds, steps, where)
        for name, kinds in zip(COLUMNS, ("iu", "biuf", "biu", "biu"), strict=True)
    )
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused
        rewards = np.append(rewards.astype(np.float32), np.float32(0))
    return Episode(
        obs=_observations(raw, layout, steps, where),
        action=np.append(_ids(actions, layout, "action", where), last),
        reward=rewards,
        terminated=_ends(terminations != 0, truncations != 0, where, notes),
        complete=bool(raw.facts.get(_COMPLETE, True)),
        episode_return=raw.facts.get(_EPISODE_RETURN),
        final_observed=bool(raw.facts.get(_FINAL_OBSERVED, True)),
        **_optional(raw.infos, layout, steps + 1, where),
    )


def _observations(raw: Raw, layout: Layout, steps: int, where: str) -> np.ndarray:
    for leaf, values in zip(layout.leaves, raw.observations, strict=True):
        single = not leaf.shape and values.shape == (steps + 1, 1)
        if values.shape != (steps + 1, *leaf.shape) and not single:
            raise ValueError(
                f"{where}: {leaf.name!r} has shape {values.shape}; for {steps} actions its space "
                f"needs {(steps + 1, *leaf.shape)}, the final observation included"
            )
    joined = spaces.join(layout.leaves, raw.observations, where)
    if layout.features is not None and joined.shape[1:] != (len(layout.features.columns),):
        raise ValueError(
            f"{layout.metadata}: names {len(layout.features.columns)} features, and observations "
            f"have the shape {joined.shape[1:]}; damaged"
        )
    return joined


def _ids(values: np.ndarray, layout: Layout, name: str, where: str) -> np.ndarray:
    """Actions as indices; in our own files −1 stands for unknown."""
    count, first = len(layout.actions), layout.first_action
    wrong = (values < first) | (values >= first + count)
    if layout.ours:
        wrong &= values != NO_ACTION
    for step in np.flatnonzero(wrong):
        raise ValueError(
            f"{where}, step {step}: {name} {values[step]} is not one of the {count} actions from "
            f"{first} to {first + count - 1}"
        )
    return values.astype(np.int64) - first


def _ends(terminated: np.ndarray, truncated: np.ndarray, where: str, notes: list[str]) -> bool:
    """Whether the episode terminated."""
    for name, flags in (("terminations", terminated), ("truncations", truncated)):
        for step in np.flatnonzero(flags[:-1]):
            raise ValueError(
                f"{where}, step {step}: '{name}' says that the episode ends here, and it goes on "
                f"to step {len(flags) - 1}; split it there"
            )
    if not terminated[-1] and not truncated[-1]:
        note = "ends neither terminated nor truncated; such episodes are read as truncated"
        if not any(note in earlier for earlier in notes):
            notes.append(f"{where} {note}")
    return bool(terminated[-1])


def _optional(
    infos: dict[str, np.ndarray], layout: Layout, rows: int, where: str
) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if (mask := infos.get(INFOS["legal"])) is not None:
        shape = (rows, len(layout.actions))
        if mask.shape != shape or not np.isin(mask, (0, 1)).all():
            raise ValueError(
                f"{where}: '{INFOS['legal']}' has shape {mask.shape} of {mask.dtype}; it needs "
                f"{shape}, one row per observation and one 0 or 1 per action"
            )
        columns["legal"] = mask.astype(np.bool_)
    if (executed := infos.get(INFOS["executed"])) is not None:
        taken = _flat(executed, INFOS["executed"], "iu", rows, where)
        columns["executed"] = _ids(taken, layout, "executed action", where)
    if (propensity := infos.get(INFOS["propensity"])) is not None:
        columns["propensity"] = _flat(propensity, INFOS["propensity"], "f", rows, where)
    return columns


def _flat(values: np.ndarray, name: str, kinds: str, rows: int, where: str) -> np.ndarray:
    if values.shape not in ((rows,), (rows, 1)) or values.dtype.kind not in kinds:
        raise ValueError(
            f"{where}: '{name}' holds {values.dtype} of shape {values.shape}; it needs {rows} "
            f"{'whole ' if kinds == 'iu' else ''}numbers"
        )
    return values.reshape(rows)


def write(source: Source, path: Path, overwrite: bool = False, data_format: str = "hdf5") -> None:
    """Write all parts; the folder appears, or replaces the old one, when it is complete."""

    def check() -> None:
        refuse_to_replace(path, overwrite, lambda at: folder_of(at) == at / "data", _strangers)

    metadata: dict[str, Any] = {}
    with replacing(path, check) as partial:
        folder = partial / "data"
        folder.mkdir(parents=True)
        with WRITERS[data_format](folder) as write_episode:
            for episodes, part in for_writing(source, path):
                described = describe(part, path, data_format)
                metadata = metadata or described
                if described["observation_space"] != metadata["observation_space"]:
                    raise ValueError(f"{path}: episodes from {episodes} on have other observations")
                for index in range(part.num_episodes):
                    write_episode(episodes + index, _to_raw(part.episode(index)))
                metadata["total_episodes"] += part.num_episodes
                metadata["total_steps"] += part.num_transitions
        size = round(sum(file.stat().st_size for file in folder.rglob("*")) / 1e6, 1)
        write_json(folder / METADATA, {**metadata, "dataset_size": size})


def _to_raw(episode: Episode) -> Raw:
    steps = len(episode.action) - 1
    last = np.arange(steps) == steps - 1
    facts: dict[str, Any] = {}
    if episode.action[-1] != NO_ACTION:
        facts[_NEXT_ACTION] = int(episode.action[-1])
    if not episode.complete:
        facts[_COMPLETE] = False
    if not episode.final_observed:
        facts[_FINAL_OBSERVED] = False
    episode_return = return_of(episode)
    summed = return_of(episode._replace(episode_return=None))
    if not np.isnan(episode_return) and episode_return != summed:
        facts[_EPISODE_RETURN] = episode_return
    ends = (last & episode.terminated, last & (not episode.terminated))
    columns = (episode.action[:-1].astype(np.int64), episode.reward[:-1], *ends)
    infos = {info: getattr(episode, name) for name, info in INFOS.items()}
    return Raw(
        [np.asarray(episode.obs, episode.obs.dtype.newbyteorder("<"))],
        dict(zip(COLUMNS, columns, strict=True)),
        {name: column for name, column in infos.items() if column is not None},
        facts,
    )


def _strangers(path: Path) -> Iterator[Path]:
    """What is no file of a Minari dataset."""
    for entry in (*path.iterdir(), *(path / "data").iterdir()):
        episode = entry.parent != path and entry.name.isdecimal()
        if not episode and entry.name not in ("data", METADATA, HDF5):
            yield entry
