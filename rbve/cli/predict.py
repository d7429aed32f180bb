"""`rbve predict`."""

import json
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from rbve.cli import _console
from rbve.cli._arguments import AlgorithmFile, Json


def command(
    policy: Positional[Annotated[Path, arg(metavar="POLICY")]],
    rows: Positional[Annotated[Path, arg(metavar="ROWS")]],
    /,
    out: Path,
    keep: tuple[str, ...] = (),
    legal: str | None = None,
    values: bool = False,
    on_error: Literal["stop", "skip"] = "stop",
    prefix: str = "policy_",
    observation: tuple[str, ...] = (),
    episode: str | None = None,
    reward: str | None = None,
    action: str | None = None,
    overwrite: bool = False,
    algorithm: AlgorithmFile = None,
    as_json: Json = False,
) -> None:
    """Decide for every row of a CSV or Parquet file, and write the decisions as Parquet.

    Rows go through in parts, so that memory does not grow with the file. For each row stand its
    columns, the policy's action, its value, its probability, how far ahead of the next best it is,
    and whether the data supports it. A row that the policy cannot take is named by file and line.

    Args:
        policy: File of a saved policy, the folder of its run, or one that `rbve export` wrote.
        rows: CSV or Parquet file with the columns that the policy takes.
        out: Parquet file to write.
        keep: Columns of ROWS that are carried through. Default: all.
        legal: Column of legal actions, arrays of 0 and 1 or names as in "wait|treat"; or a prefix
            as in "legal:*", with a column for each action.
        values: Also write the value of every action.
        on_error: What to do with a row that is none: stop there, or skip, count and list it; with
            a memory also the rows that follow in its episode.
        prefix: Of the names of the columns that are added.
        observation: Columns of a policy whose data had no named ones: one of arrays, one for each
            number, or a prefix as in "pixel_*". Default: observation, or observation_*.
        episode: Of a policy with a memory: column of episodes, whose rows follow each other in
            time. Default: episode.
        reward: Of such a policy: column of what the action of each row brought. Default: reward.
        action: Of such a policy: column of what was done in each row. Default: action if there is
            one, else what the policy decides.
        overwrite: Replace what is at OUT.
    """
    from rbve import deciding

    with _console.bar(f"reading {rows}", None, "") as bar:
        done = deciding.predict(
            policy, rows, out, keep=keep or None, legal=legal, values=values, on_error=on_error,
            prefix=prefix, observation=observation, episode=episode, reward=reward, action=action,
            overwrite=overwrite, algorithm=algorithm, on_progress=bar.reach,
        )  # fmt: skip
    figures = {"rows": done.rows, "unsupported": done.unsupported, "skipped": done.skipped}
    if as_json:
        print(json.dumps({**figures, "listed": done.listed}))
    else:
        more = f", {done.unsupported:,} without support in the data" if done.unsupported else ""
        _console.say(f"{out}: {done.rows:,} decisions{more}")
    if done.skipped:
        _console.show_notes([*done.listed, f"{done.skipped:,} rows were skipped"])
