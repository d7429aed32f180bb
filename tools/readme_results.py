"""Put the tables of scores into results/README.md, between its two markers.

python tools/readme_results.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

from rbve import rows
from rbve.files import write_atomically
from rbve.paper._pages.claims_table import tally
from rbve.paper._pages.gather import Result, Study, gather, results
from rbve.paper._pages.measures import centre
from rbve.paper.claims import judge_all
from rbve.paper.finals import SCORE

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results"
README = FOLDER / "README.md"
# Experiment -> the words before its table.
TABLES = {
    "bsuite": "{count} of `bsuite`:",
    "minatar": "{count} of `minatar`, in Atari's place: 10,000 updates of batch 32, one setting a "
    "method, mean over 4 datasets:",
    "boxing": "{count} of `boxing`, from the frames of a scripted player, a tenth of its actions "
    "random: mean return of the last two evaluations, one recording:",
    "memory": "{count} of `memory`, in DeepMind Lab's place: all that an online R2D2 recorded, "
    "5,000 updates of 8 sequences of whole episodes, mean over 4 datasets:",
    "memory_weights": "{count} of `memory_weights`, the same on recordings of its own; R-BVE has "
    "the better of λ .005 and .1, raw weights each alone:",
}
BEGIN, END = "<!-- results -->\n", "<!-- /results -->\n"


def block(folder: Path) -> str:
    runs = rows.find([folder])
    study = gather([folder], runs)
    claims = tally(judge_all([folder], runs))
    tables = [table(study, name, before) for name, before in TABLES.items() if study.of(name)]
    return "\n".join([*tables, f"Of the paper's {claims}\n"])


def table(study: Study, name: str, before: str) -> str:
    """Methods by problems: normalised scores, or returns where one recording is all there is."""
    known = results(study.of(name))
    methods = list(dict.fromkeys(each.method.name for own in known.values() for each in own))
    lines = [["method", *(problem.label for problem in known)], ["---", *["--:"] * len(known)]]
    for method in methods:
        cells = [
            cell(next((r for r in own if r.method.name == method), None)) for own in known.values()
        ]
        lines.append([f"**{method}**" if method == "R-BVE" else method, *cells])
    known = study.listed[name]
    there, wanted = study.progress(known.jobs)
    count = f"{there:,} runs" if there == wanted else f"{there:,} of {wanted:,} runs so far"
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    missing = ", ".join(known.left_out)
    note = f"\nLeft out, since their recorders learned too little: {missing}.\n" if missing else ""
    return f"{before.format(count=count)}\n\n{text}{note}"


def cell(found: Result | None) -> str:
    if found is None or not found.others:
        return "–"
    if len(found.others) > 1:
        return score(found.others)
    return f"{found.finals[0].values['return']:.1f}".replace("-", "−")


def score(values: dict[int, float]) -> str:
    found = centre(values.values(), SCORE).point("")
    if found.low is None or found.high is None:
        return f"{round(found.y)}"
    return f"{round(found.y)} [{round(found.low)}, {round(found.high)}]"


def main() -> None:
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit(f"results/{README.name}: no block from {BEGIN.strip()} to {END.strip()}")
    fresh = before + BEGIN + block(FOLDER) + END + after
    if "--check" in sys.argv[1:]:
        sys.exit(
            0 if fresh == text else "results/README.md does not show the rows; run `make results`"
        )
    write_atomically(README, fresh.encode())


if __name__ == "__main__":
    main()
