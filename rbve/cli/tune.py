"""`rbve tune`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, Positional, arg

from rbve.cli import _console
from rbve.cli._arguments import ClusterName, Gpus, Json, cluster_of, find_modules_here
from rbve.tuning.options import TuneOptions

RESUMES = True
_SHOWN = 5  # trials in the table


def command(
    data: Positional[Annotated[Path, arg(metavar="DATA")]],
    /,
    options: OmitArgPrefixes[TuneOptions] = TuneOptions(),  # noqa: B008
    out: Path = Path("tune"),
    cluster: ClusterName = None,
    gpus: Gpus = 0.0,
    as_json: Json = False,
) -> None:
    """Search for settings: propose, train, stop the worse early, go on with the better.

    Cohorts of trials are trained on all cores, judged, and the best third goes on for three times
    as many updates (successive halving). Run the same command again after an interruption and it
    goes on; with more --trials it adds to the search. Needs pip install "rbve[tune]".

    Exit codes: 0 done, 2 bad input, 5 every trial diverged, 130 Ctrl-C, 143 SIGTERM.

    Args:
        data: The log, a store, as `rbve record` and `rbve convert` write them.
        out: Folder for the study (study.journal), runs, the page and the best policy.
    """
    from rbve import decisions

    find_modules_here(options.env)
    longest = options.steps * options.trials
    words = f"up to {options.trials} trials of {options.steps:,} updates"
    with _console.bar(words, longest, "updates") as bar:
        where = cluster_of(cluster, gpus, bar.cluster)
        found = decisions.tune(data, out, on_progress=bar.trained, cluster=where, **vars(options))
    if as_json:
        content = {"criterion": found.criterion, "maximise": found.maximise}
        content |= {"best": found.best and asdict(found.best), "importance": found.importance}
        print(json.dumps({**content, "trials": [asdict(each) for each in found.trials]}))
    else:
        ends = [each for each in found.trials if each.state == "finished"]
        better = sorted(ends, key=lambda each: each.value or 0.0, reverse=found.maximise)
        _console.say(f"{found.criterion}, of {len(found.trials)} trials:")
        for each in better[:_SHOWN]:
            tried = ", ".join(f"{name} {value}" for name, value in each.tried.items())
            _console.say(f"  {_console.shown(each.value)}  trial {each.number}: {tried}")
    _console.tell(f"page: {out / 'index.html'}")
    if found.best is None:
        _console.fail("every trial diverged; search lower learning rates", code=5)
    _console.tell(f"policy: {out / 'policy.safetensors'}")
