"""Commands that bring data in: record, convert, inspect."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import OmitArgPrefixes, Positional, arg

from rbve.cli import console
from rbve.cli.arguments import AlgorithmFile, EnvName, Json, Legal, find_modules_here, need_one
from rbve.data import formats
from rbve.data.logs.options import Options as LogColumns

FORMATS = "; ".join(f"{name}: {formats.summary(name)}" for name in formats.names())
FormatName = Annotated[
    str | None, arg(help=f"Format of the data, if it cannot be told. {FORMATS}.", metavar="FORMAT")
]
Columns = OmitArgPrefixes[LogColumns]


def record(
    env: Positional[EnvName],
    /,
    out: Path,
    episodes: int | None = None,
    policy: str = "online",
    epsilon: float = 0.0,
    noise: float = 0.0,
    seed: tuple[int, ...] = (0,),
    keep: float = 1.0,
    overwrite: bool = False,
    preset: Literal["rlu-atari", "rlu-dmlab"] | None = None,
    steps: int | None = None,
    algorithm: AlgorithmFile = None,
    legal: Legal = None,
    as_json: Json = False,
) -> None:
    """Record a dataset from an environment.

    Args:
        out: Folder of the dataset; with several seeds, of one dataset each (OUT/SEED).
        episodes: Episodes to play. Default: the paper's number for the environment, else 1000; an
            online agent in MinAtar plays for half a million steps.
        policy: "online" (a DQN while it learns), "r2d2" (an agent with memory while it learns; by
            --steps, not --episodes: 200,000 unless the environment has its own number), "uniform",
            "script" (a player written for the game, e.g. atari:Boxing), or a saved policy's file.
        epsilon: Share of random actions of a saved policy or a script (0.25 = noisy expert).
        noise: Probability that the environment executes a random action instead.
        seed: One or more seeds; each gives its own dataset.
        keep: Share of the episodes to keep, drawn at random (the paper keeps 0.1).
        overwrite: Replace an existing dataset, which stays until the new one is whole.
        preset: rlu-atari = the paper's online agent for Atari: a million rows of replay, about 7 GB
            in a temporary file (in memory, where the disk has no room). rlu-dmlab = its R2D2 for
            DeepMind Lab, in environments in JAX: 100 million steps, 12 million of them in memory.
        steps: Environment steps to record, of "r2d2" or "online"; in the place of --episodes.
    """
    from rbve import api
    from rbve.audit.files import audit_path

    need_one("--seed", seed)
    find_modules_here(env)
    folders = [out] if len(seed) == 1 else [out / str(one) for one in seed]
    with console.bar(f"recording {env}", len(seed), "") as bar:
        done = dict.fromkeys(seed, 0.0)

        def one(item: tuple[int, Path]) -> None:
            def note(progress: Any) -> None:
                bar.advance(progress.share - done[item[0]], progress.last_return)
                done[item[0]] = progress.share

            api.record(
                env,
                item[1],
                episodes,
                policy,
                epsilon,
                noise,
                item[0],
                keep,
                overwrite,
                note,
                preset,
                steps,
                algorithm,
                legal,
            )

        # Absolute, as ViZDoom changes the working directory while it starts.
        places = [folder.absolute() for folder in folders]
        api.local.on_all_devices(one, list(zip(seed, places, strict=True)))
    for folder in folders:
        show_audit(folder, audit_path(folder), as_json)


def convert(
    src: Positional[Annotated[Path, arg(metavar="SRC")]],
    dst: Positional[Annotated[Path, arg(metavar="DST")]],
    /,
    log: Columns = LogColumns(),  # noqa: B008
    columns: Path | None = None,
    format: FormatName = None,
    to: str | None = None,
    overwrite: bool = False,
) -> None:
    """Bring data in, or out: from any format to the native store, npz, Parquet, CSV or Minari.

    SRC is a file, a folder, or for RL Unplugged a glob of shards in quotes. DST is written as its
    suffix says (.npz, .parquet, .csv), else as a native store, which is what `rbve train` takes.
    Nothing appears at DST until all of it is there.

    For CSV and Parquet logs, one row per decision, say which column is what:

        rbve convert visits.csv visits --episode visit --action treatment --reward outcome

    Args:
        src: What to read.
        dst: What to write.
        columns: TOML file with the same choices, `episode = "visit"` and so on; flags go first.
        to: Format to write, if the suffix of DST does not say: minari, minari_arrow, ...
        overwrite: Replace what is at DST, which stays until the new data is whole.
    """
    from rbve.data.convert import convert as run

    options = console.log_options(log, columns)
    with console.bar(f"reading {src}", None, "") as bar:
        notes = run(src, dst, format, to, options, overwrite, bar.reach)
    console.show_notes(notes)
    console.show_written(dst)


def inspect(
    data: Positional[Annotated[Path, arg(metavar="DATA")]],
    /,
    log: Columns = LogColumns(),  # noqa: B008
    columns: Path | None = None,
    format: FormatName = None,
    html: Path | None = None,
    gamma: float = 0.99,
    beta: float = 0.5,
    as_json: Json = False,
) -> None:
    """Audit a dataset of any format: what it holds, what is wrong with it, whether to train on it.

    Ends in a verdict, which is also the exit code: 0 fine, 3 look at this, 4 do not train.

    Args:
        data: A store, or a file or folder of any format that `rbve convert` reads.
        columns: TOML file that says which column of a CSV or Parquet log is what.
        html: Also write a page with figures.
        gamma: Discount of the values shown.
        beta: Temperature of the ranking weight.
    """
    from rbve.audit.files import audit_path

    found = audit_path(data, format, console.log_options(log, columns), gamma, beta)
    show_audit(data, found, as_json)
    if html is not None:
        from rbve.report.audit_page import write

        console.tell(f"page: {write(found, html, str(data))}")
    sys.exit(found.exit_code)


def show_audit(path: Path, found: Any, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"path": str(path), **found.to_json()}))
    else:
        from rbve.cli import audit_terminal

        audit_terminal.show(found, str(path))
