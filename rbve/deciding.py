"""The Python interface, from a saved policy to decisions: nothing here needs JAX."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rbve import runtime
from rbve.runtime import Decider
from rbve.runtime.folder import ARRAYS, DESCRIPTION

if TYPE_CHECKING:
    from rbve.policy import Policy
    from rbve.streaming import Predicted

__all__ = ["load_policy", "predict"]


def load_policy(path: str | Path, algorithm: str | Path | None = None) -> Decider:
    """A saved policy that decides by NumPy alone: neither JAX nor a compilation is waited for.

    Args:
        path: File of a saved policy, the folder of its run, or one that `rbve export` wrote.
        algorithm: File of the policy's algorithm, where it is to be computed anew by that.

    Returns:
        What decides: `act`, `decide`, `decisions`, `q_values`, `scores`, `start`, as of a Policy.

    Raises:
        ValueError: It is no policy, or damaged; the message says what.

    Example:
        >>> policy = rbve.load_policy("policy.safetensors")
        >>> policy.decide({"age": 61, "blood_pressure": 158, "ward": "B"}) in policy.actions
        True
    """
    place = Path(path)
    if place.name in (ARRAYS, DESCRIPTION) or (place / DESCRIPTION).is_file():
        return runtime.load(place)
    from rbve.runtime import saved

    file = saved.policy_file(place)
    known = saved.load(file) if algorithm is None else None
    if known is not None:
        return known
    from rbve.policy import Policy  # of an earlier version, or it computes what no program can

    return Policy.load(file, algorithm).decider


def predict(
    policy: "Policy | Decider | str | Path",
    rows: str | Path,
    out: str | Path,
    *,
    keep: Sequence[str] | None = None,
    legal: str | None = None,
    values: bool = False,
    on_error: str = "stop",
    prefix: str = "policy_",
    observation: Sequence[str] = (),
    episode: str | None = None,
    reward: str | None = None,
    action: str | None = None,
    overwrite: bool = False,
    algorithm: str | Path | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> "Predicted":
    """Decide for every row of a CSV or Parquet file, and write the decisions as Parquet.

    Args:
        policy: A Policy, or what load_policy gives or takes.
        rows: File with the columns that the policy takes.
        out: Parquet file to write.
        keep: Columns of `rows` that are carried through; None = all.
        legal: Column of legal actions, or a prefix as in `legal:*`.
        values: Also write the value of every action.
        on_error: "stop" at a row that is none, or "skip" it, and with a memory the rows that follow
            in its episode.
        prefix: Of the names of the columns that are added.
        observation: Columns of a policy whose data had no named ones: one of arrays, one for each
            number, or a prefix as in `pixel_*`; () = `observation` or `observation_*`.
        episode: Of a policy with a memory: column of episodes, whose rows follow each other.
        reward: Of such a policy: column of what the action of each row brought.
        action: Of such a policy: column of what was done; None = `action`, if there is one, else
            what the policy decides.
        overwrite: Replace what is at `out`.
        algorithm: File of a saved policy's algorithm, where it has scores of its own.
        on_progress: Called as rows are written, with how much was read of how much.

    Returns:
        How many rows were written, lack support and were skipped, and the first of these by line.

    Raises:
        ValueError: A column or row is not what the policy takes.

    Example:
        >>> rbve.predict("policy.safetensors", "examples/visits.csv", "decisions.parquet").rows
        2021
    """
    from rbve import streaming  # Arrow takes longer than a decision

    if on_error not in ("stop", "skip"):
        raise ValueError(f"on_error is 'stop' or 'skip'; got {on_error!r}")
    if isinstance(policy, str | Path):
        policy = load_policy(policy, algorithm)
    decider = policy if isinstance(policy, Decider) else policy.decider
    kept = None if keep is None else tuple(keep)
    plan = streaming.Prediction(
        kept, legal, values, on_error == "skip", prefix, tuple(observation),
        episode, reward, action,
    )  # fmt: skip
    return streaming.predict(decider, Path(rows), Path(out), plan, overwrite, on_progress)
