"""The report of a study: the paper's claims and what was measured, then every experiment."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rbve import report, rows
from rbve.paper.claims import Judged, judge_all
from rbve.paper.results import EXPERIMENTS, THEORY, listed
from rbve.rows import Run

_TITLE = "The paper's claims, measured"
_OWN_TITLE = "A study"  # of users' experiments alone


class _Findings(NamedTuple):
    """What reports show, read once."""

    paths: Sequence[Path]
    runs: Sequence[Run]
    judged: Sequence[Judged]  # the paper's claims; empty where none of its experiments was run
    studied: bool = True  # with experiments, which make a page of their own


def read(paths: Iterable[str | Path]) -> _Findings:
    """All runs below the paths, and what those of a study say about the paper's claims."""
    folders = [Path(path) for path in paths]
    # A study of theory alone has no trained runs, which is not worth a complaint.
    trained = [
        path for path in folders if (path / EXPERIMENTS).is_dir() or not (path / THEORY).is_dir()
    ]
    runs = rows.find(trained)
    judged = judge_all(folders, runs)
    return _Findings(folders, runs, judged, bool(judged or listed(folders)))


def write_report(paths: Iterable[str | Path], out: str | Path) -> Path:
    """Page of all runs below `paths`; of a study, with its claims and experiments.

    `out` is an .html file, or a folder that gets index.html.
    """
    return write_page(read(paths), out)


def write_page(findings: _Findings, out: str | Path) -> Path:
    if not findings.studied:
        return report.write_report(findings.paths, out)
    from rbve.paper._pages import claims_table, overview, sizes_table
    from rbve.paper._pages.gather import gather
    from rbve.report import problems, table
    from rbve.report.page import encode, write
    from rbve.report.summary import group

    judged, study = findings.judged, gather(findings.paths, findings.runs)
    groups = group([run for run in findings.runs if run.job not in study.longer])
    files = {"summary.csv": encode(table.as_csv(groups))}
    sections = overview.sections(study, bool(judged))
    if judged:
        files["claims.csv"] = encode(claims_table.as_csv(judged))
        files["sizes.csv"] = encode(sizes_table.as_csv(sizes_table.rows(judged, study)))
        figures = {figure.name: figure for each in sections for figure in each.figures}
        sections = [claims_table.section(judged, figures, study), *sections]
    title = _TITLE if findings.judged else _OWN_TITLE
    return write(sections, Path(out), title, problems.about(groups), files)
