"""`rbve follow`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rbve.cli import _console
from rbve.cli._arguments import AlgorithmFile, Legal, find_modules_here

RESUMES = True


def command(
    runs: Positional[Annotated[Path, arg(metavar="RUNS")]],
    /,
    env: str | None = None,
    episodes: int | None = None,
    epsilon: float | None = None,
    seed: int = 0,
    algorithm: AlgorithmFile = None,
    legal: Legal = None,
    once: bool = False,
) -> None:
    """Evaluate runs from beside while they train: every snapshot from now on, then the final one.

    Start it in a second terminal on the folder that `rbve train ... --out RUNS` writes, best with
    `--env none` there, so that training does not wait for episodes. It ends when every run has.
    Run it again after an interruption. `rbve report` shows its figures in place of training's own.

    Args:
        runs: Folder of the runs.
        env: Where to evaluate; needed where training names none, or one of your own
            (gymnasium:MODULE:ID).
        episodes: Episodes per evaluation. Default: as the run says.
        epsilon: Share of random actions. Default: as the run says (0.4^8).
        seed: Seed of the episodes.
        once: Evaluate what is there and leave.
    """
    from rbve import backend
    from rbve.evaluation.follow import Evaluated, FollowPlan, runs_below
    from rbve.evaluation.follow import follow as run

    backend.prepare()

    def note(evaluated: Evaluated) -> None:
        shown = evaluated.figures.get("return", evaluated.figures.get("final/return"))
        _console.tell(f"{evaluated.folder.name}: step {evaluated.step}: return {shown:.6g}")

    find_modules_here(env)
    plan = FollowPlan(env, episodes, epsilon, seed, algorithm, legal)
    if not once and not runs_below(runs):
        _console.tell(f"waiting for runs below {runs}")
    done, known = run(runs, plan, note, once)
    if done < known:
        _console.tell(f"{done} of {known} runs evaluated to the end; run it again for the others")
    else:
        _console.tell(f"all {known} runs are evaluated" if known > 1 else "the run is evaluated")
