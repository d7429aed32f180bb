"""`rbve record`."""

from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from rbve.cli import _console
from rbve.cli._arguments import AlgorithmFile, EnvName, Json, Legal, find_modules_here, need_one


def command(
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
            "script" (a player written for the game, e.g. atari:Boxing), "clinicians" (those of
            icu_sepsis), or a saved policy's file.
        epsilon: Share of random actions of a saved policy, a script or the clinicians (0.25 = noisy
            expert).
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
    from rbve.audit import audit_path
    from rbve.cli._audit import show
    from rbve.sweep.devices import on_all_devices

    need_one("--seed", seed)
    find_modules_here(env)
    folders = [out] if len(seed) == 1 else [out / str(one) for one in seed]
    plan: Any = {"epsilon": epsilon, "noise": noise, "keep": keep, "overwrite": overwrite}
    plan |= {"steps": steps, "legal": legal, "preset": preset, "algorithm": algorithm}
    with _console.bar(f"recording {env}", len(seed), "") as bar:
        done = dict.fromkeys(seed, 0.0)

        def one(item: tuple[int, Path]) -> None:
            own, folder = item

            def note(progress: Any) -> None:
                bar.advance(progress.share - done[own], progress.last_return)
                done[own] = progress.share

            api.record(env, folder, episodes, policy, seed=own, on_progress=note, **plan)

        # Absolute, as ViZDoom changes the working directory while it starts.
        places = [folder.absolute() for folder in folders]
        on_all_devices(one, list(zip(seed, places, strict=True)))
    for folder in folders:
        show(audit_path(folder), str(folder), as_json)
