"""The recorded data beside the paper's, and an audit of each dataset."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from rbve.paper import printed as paper
from rbve.paper.audits import read_audits
from rbve.paper.finals import Problem, final_of
from rbve.paper.frames import read_strips
from rbve.paper.pages.gather import Study, problem_order
from rbve.paper.pages.html import folded, heading, paragraph, table
from rbve.report.filter_table import filter_table
from rbve.report.page import Section
from rbve.report.statistics import finite
from rbve.report.table import ABSENT, number

COLUMNS = (
    "data",
    "datasets",
    "episodes, of recorded",
    "paper's",
    "transitions",
    "paper's",
    "mean length",
    "paper's",
    "behaviour return",
    "random",
    "online agent's best",
)
AUDITED = (
    "dataset",
    "verdict",
    "findings",
    "episodes",
    "transitions",
    "mean length",
    "mean return",
    "median return",
    "highest return",
    "actions",
    "executed differs",
)
ABOUT = (
    "Mean over datasets, in brackets the lowest and the highest. Counts are of what trains: the "
    "share that is kept of the recording. The paper's table gives cartpole before its cut to 10%, "
    "catch and mountain_car after it; it has no noise of .25, so its lines for .2 and .3 stand "
    "there, in this order. Random: a uniformly random policy; online agent's best: the noise-free "
    "value of its best snapshot, for Atari a public DQN's score in its place. Both are the 0 and "
    "the 100 of the normalised score."
)


def section(study: Study) -> Section:
    lines = {problem: cells(problem, facts) for problem, facts in by_kind(study).items()}
    plain = [line for problem, line in lines.items() if standard(problem)]
    other = [line for problem, line in lines.items() if not standard(problem)]
    body = paragraph(ABOUT) + table("recorded data", COLUMNS, plain or other)
    if plain and other:
        body += folded("Other kinds of data", table("other kinds of data", COLUMNS, other))
    strips = {name: png for path in study.paths for name, png in read_strips(path).items()}
    return Section(
        "data",
        "The recorded data",
        body,
        after=pictures(strips) + audit_table(study.paths),
        short="Data",
        files={f"frames-{name}.png": png for name, png in strips.items()},
    )


def pictures(strips: Mapping[str, bytes]) -> str:
    """Frames of the data, inside the page."""
    if not strips:
        return ""
    return heading("What it looks like") + "".join(
        f'<figure class="picture frames"><figcaption>{escape(name)}: frames of its first episode, '
        f'evenly spaced from begin to end</figcaption><img alt="Frames of {escape(name)}" '
        f'src="data:image/png;base64,{b64encode(png).decode()}"/></figure>\n'
        for name, png in strips.items()
    )


def standard(problem: Problem) -> bool:
    """The paper's own kind of data: a tenth of an online agent's episodes."""
    plain = problem.side == "all" and problem.action == "chosen"
    return plain and problem.epsilon is None and problem.keep == 0.1


def by_kind(study: Study) -> dict[Problem, list[Mapping[str, Any]]]:
    """Kind of data -> facts of its datasets, each once."""
    found: dict[Problem, dict[int, Mapping[str, Any]]] = {}
    for run in study.runs.values():
        final = final_of(run, {})
        found.setdefault(final.problem, {})[final.seed] = run.facts
    return {
        problem: [found[problem][seed] for seed in sorted(found[problem])]
        for problem in sorted(found, key=problem_order)
    }


def cells(problem: Problem, facts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    episodes = column(facts, "episodes")
    transitions = column(facts, "transitions")
    printed = paper.beside(problem.env, problem.noise) if standard(problem) else []
    theirs = {
        name: " / ".join(f"{getattr(each, name):,}" for each in printed) or ABSENT
        for name in ("episodes", "transitions", "length")
    }
    # Not counted where steps were recorded, and not episodes.
    recorded = spread([each.get("source", {}).get("recorded_episodes") for each in facts], 0)
    of_recorded = "" if recorded == ABSENT else f" of {recorded}"
    return (
        problem.label,
        str(len(facts)),
        f"{spread(list(episodes), 0)}{of_recorded}",
        theirs["episodes"],
        spread(list(transitions), 0),
        theirs["transitions"],
        spread(list(transitions / episodes)) if len(episodes) == len(transitions) else ABSENT,
        theirs["length"],
        *(
            spread([each.get(name) for each in facts])
            for name in ("behaviour_return", "random_return", "reference_return")
        ),
    )


def column(facts: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    return finite(each.get(name) for each in facts)


def spread(values: Sequence[float | None], places: int | None = None) -> str:
    known = finite(values)
    if not len(known):
        return ABSENT

    def words(value: float) -> str:
        return f"{value:,.0f}" if places == 0 else number(value)

    mean = words(float(known.mean()))
    if known.min() == known.max():
        return mean
    return f"{mean} ({words(float(known.min()))} to {words(float(known.max()))})"


def audit_table(paths: Sequence[Path]) -> str:
    audits = {name: each for path in paths for name, each in read_audits(path).items()}
    if not audits:
        return paragraph(
            "No audits of the data lie beside the rows; `rbve reproduce` writes them.", "muted"
        )
    verdicts = [str(each["verdict"]) for each in audits.values()]
    tally = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    return (
        heading("Audit of each dataset")
        + paragraph(
            f"{len(audits)} recordings, whole, as `rbve inspect` judges them: {tally}. Open a row "
            "for its findings."
        )
        + filter_table(
            "audits",
            AUDITED,
            [audit_cells(name, each) for name, each in audits.items()],
            ("verdict",),
            "audits",
            [detail(name, each) for name, each in audits.items()],
        )
    )


def audit_cells(name: str, audit: Mapping[str, Any]) -> tuple[str | int | float | None, ...]:
    differs = audit.get("executed_differs")
    shares = audit["actions"]
    return (
        name,
        audit["verdict"],
        "; ".join(each["name"] for each in audit["findings"]) or "none",
        audit["episodes"],
        audit["transitions"],
        round(audit["length"]["mean"], 1),
        round(audit["returns"]["mean"], 2),
        round(audit["returns"]["median"], 2),
        round(audit["returns"]["high"], 2),
        ", ".join(f"{action} {share:.0%}" for action, share in shares.items()),
        None if differs is None else round(differs, 3),
    )


def detail(name: str, audit: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        f"{each['name']} ({each['level']})": f"{each['seen']}. {each['why']}. {each['remedy']}"
        for each in audit["findings"]
    }
    quantiles = {k: audit["returns"][k] for k in ("low", "q25", "median", "q75", "high")}
    return {
        **(found or {"findings": "none"}),
        "notes": "; ".join(audit["notes"]) or "none",
        "returns": quantiles,
        "command": f"rbve inspect {name}",
    }
