"""Commands that measure, show and keep results: follow, report, pack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rbve.cli import console
from rbve.cli.arguments import AlgorithmFile, Json, Legal, find_modules_here, need_one


def follow(
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
    from rbve import api
    from rbve.evaluation.follow import Evaluated, Plan, runs_below
    from rbve.evaluation.follow import follow as run

    del api  # sets JAX up

    def note(found: Evaluated) -> None:
        shown = found.figures.get("return", found.figures.get("final/return"))
        console.tell(f"{found.folder.name}: step {found.step}: return {shown:.6g}")

    find_modules_here(env)
    plan = Plan(env, episodes, epsilon, seed, algorithm, legal)
    if not once and not runs_below(runs):
        console.tell(f"waiting for runs below {runs}")
    done, known = run(runs, plan, note, once)
    console.tell(leaving(done, known))


def leaving(done: int, known: int) -> str:
    if done < known:
        return f"{done} of {known} runs evaluated to the end; run it again for the others"
    return f"all {known} runs are evaluated" if known > 1 else "the run is evaluated"


def report(
    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUNS")]],
    /,
    out: Path = Path("report.html"),
    as_json: Json = False,
) -> None:
    """Write a page of learning curves, final returns and over-estimation from result rows.

    Of a study (`rbve reproduce`), the page opens with the paper's claims and what was measured.

    Args:
        runs: One or more folders of runs, or of a study.
        out: The page. Its figures and CSV files go into a folder beside it: NAME-figures of
            NAME.html, figures of index.html.
    """
    from rbve.paper import report

    need_one("RUNS", runs)
    with console.bar("drawing", None, ""):
        found = report.read(runs)
        page = report.write_page(found, out)
    if found.judged:
        console.show_claims(found.judged, as_json)
    else:
        console.show_runs(found.runs, as_json)
    console.tell(f"report: {page}")


def pack(
    study: Positional[Annotated[tuple[Path, ...], arg(metavar="STUDY")]], /, out: Path
) -> None:
    """Keep of studies what reports read: rows, lists of runs, audits; no data, no checkpoints.

    `rbve report OUT` then gives the same page as `rbve report STUDY`. To add a study to what was
    packed before, name both: `rbve pack results study --out results`.

    Args:
        study: One or more folders of studies.
        out: Folder for a few small files.
    """
    from rbve.paper import results

    need_one("STUDY", study)
    packed = results.pack(study, out)
    left = f", {packed.left_out} not finished or of no experiment" if packed.left_out else ""
    console.tell(f"{out}: {packed.runs} runs{left}; {packed.theory} of theory")
