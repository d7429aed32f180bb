"""The recordings of a study: what an experiment's data asks for, made where it is missing.

OUT/data/<recording>/<seed>    see rbve/sweep/recordings.py; shared by all experiments
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rbve.behaviours import r2d2_options
from rbve.behaviours.kinds import online_dqn
from rbve.behaviours.record import EXPERT, Asked, RecordingPlan, choose, default_episodes, record
from rbve.behaviours.record import Progress as RecordingProgress
from rbve.data.manifest import is_recorded, read_provenance
from rbve.paper.experiments import Data, Scale
from rbve.sweep.devices import on_all_devices
from rbve.sweep.recordings import Recording


def recording(data: Data, scale: Scale, seed: int) -> Recording:
    episodes = max(1, round(default_episodes(data.env) * scale.episodes))
    own = max(1, round(data.episodes * scale.episodes)) if data.episodes else 0
    full = (r2d2_options if data.memory else online_dqn).default_options(data.env).steps
    steps = round(full * scale.episodes)
    kind = (data.env, data.noise, data.expert)
    return Recording(*kind, seed, episodes, steps, data.script, data.memory, own)


def record_all(
    wanted: Sequence[Recording],
    out: Path,
    on_progress: Callable[[Recording, float, float], None] = lambda recording, fresh, last: None,
    is_needless: Callable[[Recording], bool] = lambda recording: False,
) -> None:
    """Record what is missing, on all devices; experts after the agents they come from.

    Progress: a recording, the share of it that came about since last told, its last return.
    """
    _check_sizes(wanted, out)
    out = out.absolute()  # ViZDoom changes the working directory while it starts

    def one(each: Recording) -> None:
        if is_needless(each):
            on_progress(each, 1.0, math.nan)
        else:
            record_one(each, out, on_progress)

    for experts in (False, True):
        due = [each for each in wanted if (each.expert is not None) == experts]
        on_all_devices(one, [each for each in due if not is_recorded(each.folder(out))])


def _check_sizes(wanted: Sequence[Recording], out: Path) -> None:
    """Recordings of another scale must not pass for those of this one."""
    for each in wanted:
        folder = each.folder(out)
        if not is_recorded(folder):
            continue
        about = read_provenance(folder)
        size, unit = about.get("recorded_episodes"), "episodes"
        if size is None:
            size, unit = (about.get("agent") or {}).get("steps"), "steps"
        held = f"{size:,} {unit}" if type(size) is int else "unknown size"
        if held != each.size:
            raise ValueError(
                f"{folder}: holds a recording of {held}, and this scale takes {each.size}; "
                "give another --out, or the scale it was made with"
            )


def record_one(each: Recording, out: Path, on_progress: Callable[..., None]) -> None:
    seen = 0.0

    def note(progress: RecordingProgress) -> None:
        nonlocal seen
        on_progress(each, progress.share - seen, progress.last_return)
        seen = progress.share

    asked = "r2d2" if each.memory else "online"
    more: dict[str, Any] = {"steps": each.steps} if each.steps else {"episodes": each.episodes}
    if each.expert is not None:
        online = each.online.folder(out)
        asked, reference = str(online / EXPERT), learned_by(online)["reference"]
        episodes = each.expert_episodes or each.episodes
        more = {"episodes": episodes, "epsilon": each.expert, "reference": reference}
    elif each.script is not None:
        asked, more = "script", {"episodes": each.episodes, "epsilon": each.script}
    more |= {"noise": each.noise, "seed": each.seed, "overwrite": True}
    plan = RecordingPlan(each.env, each.folder(out), **more)
    record(choose(Asked(asked), plan), plan, note)


def learned_by(online: Path) -> dict[str, Any]:
    """The provenance of an online agent's recording: what it came to, and a random policy's."""
    found = read_provenance(online)
    reference = found.get("reference") or {}
    if None in (found.get("late_return"), reference.get("online"), reference.get("random")):
        raise ValueError(
            f"{online}: does not say what its agent came to; delete it, and it is recorded again"
        )
    return found
