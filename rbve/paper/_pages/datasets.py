"""The recorded data beside the paper's, and an audit of each dataset."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from rbve.paper import printed as paper
from rbve.paper._pages import render
from rbve.paper._pages.gather import Study, by_problem
from rbve.paper.audits import read_audits
from rbve.paper.finals import Problem, final_of
from rbve.paper.frames import read_strips
from rbve.report.page import Section
from rbve.report.render import Cell, filter_table
from rbve.report.statistics import finite
from rbve.report.table import ABSENT, number

COLUMNS = (
    "data", "datasets", "episodes, of recorded", "paper's", "transitions", "paper's",
    "mean length", "paper's", "behaviour return", "random", "online agent's best",
)  # fmt: skip
_RETURNS = ("behaviour", "random", "reference")  # the last COLUMNS
_AUDITED: dict[str, Callable[[str, Mapping[str, Any]], Cell]] = {
    "dataset": lambda name, _: name,
    "verdict": lambda _, audit: audit["verdict"],
    "findings": lambda _, audit: "; ".join(f["name"] for f in audit["findings"]) or "none",
    "episodes": lambda _, audit: audit["episodes"],
    "transitions": lambda _, audit: audit["transitions"],
    "mean length": lambda _, audit: round(audit["length"]["mean"], 1),
    "mean return": lambda _, audit: round(audit["returns"]["mean"], 2),
    "median return": lambda _, audit: round(audit["returns"]["median"], 2),
    "highest return": lambda _, audit: round(audit["returns"]["high"], 2),
    "actions": lambda _, audit: ", ".join(f"{a} {s:.0%}" for a, s in audit["actions"].items()),
    "executed differs": lambda _, audit: (
        None if audit.get("executed_differs") is None else round(audit["executed_differs"], 3)
    ),
}


def section(study: Study) -> Section:
    kinds = by_problem(final_of(run, {}) for run in study.runs.values())
    lines = {problem: _cells(problem, study.facts(own)) for problem, own in kinds.items()}
    body = render(
        "data.jinja",
        columns=COLUMNS,
        standard=[line for problem, line in lines.items() if _standard(problem)],
        other=[line for problem, line in lines.items() if not _standard(problem)],
    )
    strips = {name: png for path in study.paths for name, png in read_strips(path).items()}
    files = {f"frames-{name}.png": png for name, png in strips.items()}
    audits = {name: each for path in study.paths for name, each in read_audits(path).items()}
    verdicts = [str(each["verdict"]) for each in audits.values()]
    cells = [tuple(cell(*each) for cell in _AUDITED.values()) for each in audits.items()]
    details = [_detail(name, each) for name, each in audits.items()]
    table = filter_table("audits", tuple(_AUDITED), cells, ("verdict",), "audits", details)
    after = render(
        "audits.jinja",
        frames={name: b64encode(png).decode() for name, png in strips.items()},
        count=len(audits),
        tally=", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts)),
        table=Markup(table),
    )
    return Section("data", "The recorded data", body, after=after, short="Data", files=files)


def _standard(problem: Problem) -> bool:
    """The paper's own kind of data: a tenth of an online agent's episodes."""
    plain = problem.side == "all" and problem.action == "chosen"
    return plain and problem.epsilon is None and problem.keep == 0.1


def _cells(problem: Problem, facts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    episodes, transitions = (
        finite(each.get(name) for each in facts) for name in ("episodes", "transitions")
    )
    printed = paper.beside(problem.env, problem.noise) if _standard(problem) else []
    theirs = {
        name: " / ".join(f"{getattr(each, name):,}" for each in printed) or ABSENT
        for name in ("episodes", "transitions", "length")
    }
    # Not counted where steps were recorded, and not episodes.
    recorded = _spread([each.get("source", {}).get("recorded_episodes") for each in facts], 0)
    of_recorded = "" if recorded == ABSENT else f" of {recorded}"
    return (
        problem.label,
        str(len(facts)),
        f"{_spread(list(episodes), 0)}{of_recorded}",
        theirs["episodes"],
        _spread(list(transitions), 0),
        theirs["transitions"],
        _spread(list(transitions / episodes)) if len(episodes) == len(transitions) else ABSENT,
        theirs["length"],
        *(_spread([each.get(f"{name}_return") for each in facts]) for name in _RETURNS),
    )


def _spread(values: Sequence[float | None], places: int | None = None) -> str:
    known = finite(values)
    if not len(known):
        return ABSENT
    spread = (float(value) for value in (known.mean(), known.min(), known.max()))
    mean, low, high = (f"{value:,.0f}" if places == 0 else number(value) for value in spread)
    return mean if known.min() == known.max() else f"{mean} ({low} to {high})"


def _detail(name: str, audit: Mapping[str, Any]) -> dict[str, Any]:
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
