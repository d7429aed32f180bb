"""Between an episode as Minari stores it and an Episode."""

from __future__ import annotations

from typing import Any

import numpy as np

from rbve.data.dataset import NO_ACTION, Episode
from rbve.data.episode import return_of
from rbve.data.minari import spaces
from rbve.data.minari.layout import (
    COMPLETE,
    EPISODE_RETURN,
    FINAL_OBSERVED,
    INFOS,
    NEXT_ACTION,
    Layout,
    Raw,
)


def from_raw(raw: Raw, layout: Layout, where: str, notes: list[str]) -> Episode:
    """`where` opens messages; what was assumed goes into `notes`, once."""
    steps = len(np.atleast_1d(raw.actions))
    if steps < 1:
        raise ValueError(f"{where}: an episode needs at least one decision; got none")
    return Episode(
        obs=observations(raw, layout, steps, where),
        action=actions(raw, layout, steps, where),
        reward=rewards(raw.rewards, steps, where),
        terminated=_ends(raw, steps, where, notes),
        complete=bool(raw.facts.get(COMPLETE, True)),
        episode_return=raw.facts.get(EPISODE_RETURN),
        final_observed=bool(raw.facts.get(FINAL_OBSERVED, True)),
        **_optional(raw.infos, layout, steps, where),
    )


def observations(raw: Raw, layout: Layout, steps: int, where: str) -> np.ndarray:
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


def actions(raw: Raw, layout: Layout, steps: int, where: str) -> np.ndarray:
    last = raw.facts.get(NEXT_ACTION, NO_ACTION)
    if type(last) is not int or not NO_ACTION <= last < len(layout.actions):
        raise ValueError(f"{where}: next action {last}, which is not one of the actions; damaged")
    taken = _flat(raw.actions, "actions", "iu", steps, where)
    return np.append(_ids(taken, layout, "action", where), last)


def _ids(values: np.ndarray, layout: Layout, name: str, where: str) -> np.ndarray:
    """Actions as indices; in our own files −1 stands for unknown."""
    count, first = len(layout.actions), layout.first_action
    wrong = (values < first) | (values >= first + count)
    if layout.ours:
        wrong &= values != NO_ACTION
    if wrong.any():
        step = int(np.argmax(wrong))
        raise ValueError(
            f"{where}, step {step}: {name} {values[step]} is not one of the {count} actions from "
            f"{first} to {first + count - 1}"
        )
    return values.astype(np.int64) - first


def rewards(values: np.ndarray, steps: int, where: str) -> np.ndarray:
    numbers = _flat(values, "rewards", "biuf", steps, where)
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused
        return np.append(numbers.astype(np.float32), np.float32(0))


def _ends(raw: Raw, steps: int, where: str, notes: list[str]) -> bool:
    """Whether the episode terminated."""
    flags = {
        name: _flat(getattr(raw, name), name, "biu", steps, where) != 0
        for name in ("terminations", "truncations")
    }
    for name, flag in flags.items():
        if flag[:-1].any():
            raise ValueError(
                f"{where}, step {int(np.argmax(flag))}: '{name}' says that the episode ends here, "
                f"and it goes on to step {steps - 1}; split it there"
            )
    if not flags["terminations"][-1] and not flags["truncations"][-1]:
        note = "ends neither terminated nor truncated; such episodes are read as truncated"
        if not any(note in held for held in notes):
            notes.append(f"{where} {note}")
    return bool(flags["terminations"][-1])


def _optional(
    infos: dict[str, np.ndarray], layout: Layout, steps: int, where: str
) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    rows = steps + 1
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
        facts[NEXT_ACTION] = int(episode.action[-1])
    if not episode.complete:
        facts[COMPLETE] = False
    if not episode.final_observed:
        facts[FINAL_OBSERVED] = False
    episode_return = return_of(episode)
    summed = return_of(episode._replace(episode_return=None))
    if not np.isnan(episode_return) and episode_return != summed:
        facts[EPISODE_RETURN] = episode_return
    columns = {info: getattr(episode, name) for name, info in INFOS.items()}
    return Raw(
        [np.asarray(episode.obs, episode.obs.dtype.newbyteorder("<"))],
        episode.action[:-1].astype(np.int64),
        episode.reward[:-1],
        last & episode.terminated,
        last & (not episode.terminated),
        {name: column for name, column in columns.items() if column is not None},
        facts,
    )
