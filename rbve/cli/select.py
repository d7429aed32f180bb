"""`rbve select`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, Positional, arg

from rbve.cli import _console
from rbve.cli._arguments import ClusterName, Gpus, Json, cluster_of
from rbve.off_policy.options import SelectOptions

RESUMES = True


def command(
    data: Positional[Annotated[Path, arg(metavar="DATA")]],
    /,
    options: OmitArgPrefixes[SelectOptions] = SelectOptions(),  # noqa: B008
    out: Path = Path("select"),
    cluster: ClusterName = None,
    gpus: Gpus = 0.0,
    as_json: Json = False,
) -> None:
    """From a log to a decision: audit, train candidates, judge them, recommend.

    Ends in one of: deploy this policy, stay with today's behaviour, collect this first; with the
    reasons, and a page, the policy card. Candidates are trained on some episodes and judged, with
    their checkpoints, by the others. Run the same command again and it goes on where it stopped.

    Exit codes: 0 deploy, 3 stay with today's behaviour, 4 collect more data first, 2 bad input.

    Args:
        data: The log, a store, as `rbve convert` writes them.
        out: Folder for runs, fits, the card and the chosen policy.
    """
    from rbve import decisions
    from rbve.audit.verdict import counted
    from rbve.data import load
    from rbve.data.manifest import fingerprint
    from rbve.off_policy.behaviour import updates_of_cloning
    from rbve.off_policy.fits import FitPlan
    from rbve.off_policy.select import candidate_jobs, finished_runs
    from rbve.report import ope_page
    from rbve.report.ope_words import with_interval

    jobs = candidate_jobs(data, load(data, verify=False), options)
    plan = FitPlan(options.fit_steps)
    stages = options.checkpoints * len(jobs) + len(finished_runs(options.runs, fingerprint(data)))
    fits = plan.folds * stages * (2 if options.bellman else 1)
    updates = options.steps * len(jobs) + fits * plan.steps + updates_of_cloning(plan)
    train = f"training {counted(len(jobs), 'candidate')}, then " if jobs else ""
    words = f"{train}{counted(fits, 'fit')} of values"
    with _console.bar(words, updates, "updates") as bar:
        where = cluster_of(cluster, gpus, bar.cluster)
        chosen = decisions.select(
            data, out, on_progress=bar.trained, cluster=where, **vars(options)
        )
    advice, result = chosen.recommendation, chosen.result
    if as_json:
        print(json.dumps({**asdict(advice), **ope_page.to_json(result)}))
    else:
        _console.show_notes(result.notes)
        out_console = _console.output()
        own = with_interval(result.behaviour, result.behaviour_interval)
        out_console.print(f"behaviour, the log itself: {own}", soft_wrap=True)
        for line in ope_page.candidate_lines(result, advice.ranking):
            out_console.print(line, soft_wrap=True)
        name = f": {advice.policy}" if advice.decision == "deploy" else ""
        out_console.print(f"\n{advice.words}{name}", style="bold", soft_wrap=True)
        for reason in advice.reasons:
            out_console.print(f"  {reason}", soft_wrap=True)
    _console.tell(f"policy card: {out / 'card.html'}")
    if advice.decision == "deploy":
        _console.tell(f"policy: {out / 'policy.safetensors'}")
    raise SystemExit({"deploy": 0, "stay": 3, "collect": 4}[advice.decision])
