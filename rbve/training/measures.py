"""What rows say of a run: facts of its data."""

from typing import Any

from rbve.data.dataset import Dataset
from rbve.envs.atari import with_reference
from rbve.parts import DataRef
from rbve.rows import upgraded

_SOURCE = ("behaviour", "noise", "epsilon", "recorded_episodes", "keep")  # for tables
# Of a recording's provenance, which draw it is and what came of it; the rest says how it was made.
_OF_ONE_DRAW = {"seed", "reference", "late_return", "diverged_at", "finished"}


def facts(dataset: Dataset, env: str | None, ref: DataRef | None = None) -> dict[str, Any]:
    """What a reader of the rows needs to know of the data; `ref` says what was kept of it."""
    reference = dataset.provenance.get("reference") or {}
    # Returns of clipped rewards do not compare with those of an environment.
    clipped = dataset.provenance.get("rewards") == "clipped"
    # Which fragments are of one episode is not known: their mean would weigh episodes by length.
    mean = float(dataset.episode_return.mean()) if dataset.complete.all() else None
    returns = dataset.episode_return[dataset.returns_known]
    best = float(returns.max()) if len(returns) else None
    found = {
        "env": env,
        "episodes": dataset.num_episodes,
        "transitions": dataset.num_transitions,
        "actions": dataset.num_actions,
        "behaviour_return": None if clipped else mean,
        "best_return": None if clipped else best,
        "random_return": reference.get("random"),
        "reference_return": reference.get("online"),
        "late_return": dataset.provenance.get("late_return"),  # of the recorder's last episodes
        "source": {name: dataset.provenance.get(name) for name in _SOURCE},
        "recording": recording(dataset.provenance, ref or DataRef("")),
        **({"rewards": "clipped"} if clipped else {}),
        # Where the reference is not of this data's own agent, what it is.
        **({"reference_source": reference["source"]} if "source" in reference else {}),
    }
    return with_reference(found, env)


def recording(provenance: dict[str, Any], ref: DataRef) -> dict[str, Any] | None:
    """How the data was recorded: equal for replicates, which differ in the seed. None = not here.

    What `ref` kept of it is told by the run's specification. A policy that acted is known by what
    it learned from what, whatever its seed.
    """
    if "behaviour" not in provenance or "seed" not in provenance:
        return None
    made = {name: value for name, value in provenance.items() if name not in _OF_ONE_DRAW}
    notes = (ref.side != "all") + (ref.keep != 1)
    selected = made.pop("select", None) or []
    if selected[-1:] == [ref.holdout_note]:
        selected = selected[:-1]
    if stored := selected[: len(selected) - notes]:
        made["select"] = stored
    if ref.action == "executed":
        made.pop("action", None)
    if isinstance(made.get("policy"), dict):
        made["policy"] = _origin(made["policy"])
    return made


def _origin(policy: dict[str, Any]) -> dict[str, Any]:
    """What it learned from what, whatever its seed and its replicate of the data."""
    drawn = ("seed", "group", "replicate")
    job = {k: v for k, v in upgraded(policy.get("job", {})).items() if k not in drawn}
    if isinstance(job.get("data"), dict):
        data, draws = job["data"], ("path", "keep_seed", "holdout_seed")
        older = () if data.get("holdout") else ("holdout",)  # jobs that do not speak of it
        job["data"] = {k: v for k, v in data.items() if k not in (*draws, *older)}
    return {"job": job} | {name: policy[name] for name in ("from", "step") if name in policy}
