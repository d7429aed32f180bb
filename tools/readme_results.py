"""Put the headline table of results/ into README.md, between its two markers.

python tools/readme_results.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

from rbve import rows
from rbve.files import write_atomically
from rbve.report.claims.judge import judge_all
from rbve.report.claims_table import tally
from rbve.report.effects import SCORE
from rbve.report.study.gather import gather
from rbve.report.study.measures import centre
from rbve.report.study.scores import results

ROOT = Path(__file__).parents[1]
FOLDER, README = ROOT / "results", ROOT / "README.md"
BEGIN, END = "<!-- results -->\n", "<!-- /results -->\n"


def block(folder: Path) -> str:
    runs = rows.find([folder])
    study = gather([folder], runs)
    known = results(study.of("bsuite"))
    methods = list(dict.fromkeys(each.method.name for own in known.values() for each in own))
    head = ["method", *(problem.label for problem in known)]
    lines = [head, ["---", *["--:"] * len(known)]]
    for name in methods:
        cells = [
            score(next((each.others for each in own if each.method.name == name), {}))
            for own in known.values()
        ]
        lines.append([f"**{name}**" if name == "R-BVE" else name, *cells])
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    there, wanted = study.progress("bsuite")
    note = f"{there:,} runs" if there == wanted else f"{there:,} of {wanted:,} runs so far"
    claims = tally(judge_all([folder], runs))
    return f"{table}\nOf the paper's {claims} The table rests on {note} of `bsuite`.\n"


def score(values: dict[int, float]) -> str:
    if not values:
        return "–"
    found = centre(values.values(), SCORE).point("")
    if found.low is None or found.high is None:
        return f"{round(found.y)}"
    return f"{round(found.y)} [{round(found.low)}, {round(found.high)}]"


def main() -> None:
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit(f"{README.name}: no block from {BEGIN.strip()} to {END.strip()}")
    fresh = before + BEGIN + block(FOLDER) + END + after
    if "--check" in sys.argv[1:]:
        sys.exit(0 if fresh == text else "README.md does not show results/; run `make results`")
    write_atomically(README, fresh.encode())


if __name__ == "__main__":
    main()
