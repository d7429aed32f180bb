"""Between an episode as Minari stores it and an Episode."""

from __future__ import annotations

from typing import Any

import numpy as np

from rbve.data.dataset import NO_ACTION, Episode
from rbve.data.episode import return_of
from rbve.data.minari import spaces
from rbve.data.minari.layout import COLUMNS, FACTS, INFOS, Layout, Raw

_NEXT_ACTION, _COMPLETE, _FINAL_OBSERVED, _EPISODE_RETURN = FACTS


def from_raw(raw: Raw, layout: Layout, where: str, notes: list[str]) -> Episode:
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
        if not any(note in held for held in notes):
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


def to_raw(episode: Episode) -> Raw:
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
