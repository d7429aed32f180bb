"""One self-contained HTML page, with PNG copies of its figures and a CSV beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from rbve.files import write_atomically
from rbve.report import claims_table, table
from rbve.report.canvas import Drawing
from rbve.report.claims_table import Judged
from rbve.report.figures import draw
from rbve.report.labels import one_line
from rbve.report.summary import Method, Problem
from rbve.report.words import best_words, headline, plural, sizes
from rbve.rows import Run

PAGE = "index.html"
FIGURES = "figures"
TITLE = "Results of learning from logged data"
ABOUT = (
    "Each method learned a policy from recorded episodes alone; where an environment is at hand, "
    "the policy was then run in it, without further learning."
)

DEFINITIONS = {
    "n": "Training runs of the method. They differ in dataset, in training seed, or in both.",
    "Final return": "Undiscounted sum of rewards per episode when the learned policy acts, mean of "
    "the last evaluations of a run, then mean over runs. In brackets: 95% percentile bootstrap "
    "interval of that mean (10,000 resamples of runs, fixed seed); a single run has none. With few "
    "runs such an interval is a rough guide and tends to be too narrow.",
    "Normalised": "100 × (return − random) / (online reference − random): 0 is a random policy, "
    "100 the best snapshot of the online agent.",
    "Over-estimation error": "Mean of max(Q − G, 0)² over the steps of evaluated episodes: Q is "
    "the value the network claims for the action taken, G the discounted return that followed. "
    "0 means no step was over-valued. Episodes cut by a time limit are left out, since their G is "
    "not known. The table gives the median over runs, since a single run can dwarf the rest.",
    "Value error": "Mean of Q − G over the same steps, with sign: positive where the network "
    "claims too much.",
    "Action gap": "Mean difference between the highest and the second-highest Q of a state.",
    "Diverged": "Runs whose gradients stopped being finite. They end there with their last finite "
    "weights, and those weights are evaluated.",
    "Behaviour, best, random, online": "Mean return of the recorded episodes, the best of them, a "
    "uniformly random policy, and the best snapshot of the agent that learned online. Each is a "
    "mean over the datasets.",
    "(2 of 3)": "Only so many runs have a finite value; the others are left out of that figure.",
}

STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1f; --muted: #5c5c61; --back: #fafafa;
  --card: #fff; --line: #dcdce0; --accent: #c2200e; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececef; --muted: #a8a8b0; --back: #161618;
  --card: #1f1f23; --line: #3a3a40; --accent: #ff8370; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 76rem; background: var(--back);
  color: var(--ink); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.3rem; margin: 3rem 0 .3rem; padding-top: 1rem;
  border-top: 1px solid var(--line); overflow-wrap: anywhere; }
p { margin: .3rem 0 .8rem; max-width: 48rem; }
a { color: inherit; }
.muted { color: var(--muted); }
.headline { font-size: 1.08rem; font-weight: 600; margin-bottom: .2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
.scroll > table { margin: .8rem 0; }
th, td { padding: .32rem .8rem; text-align: right; white-space: nowrap; }
nav tbody th { white-space: normal; min-width: 9rem; }
th:first-child, td:first-child, tbody th { text-align: left; padding-left: 0; }
thead th { font-weight: 600; color: var(--muted); border-bottom: 2px solid var(--line);
  vertical-align: bottom; }
tbody th { font-weight: 400; }
tbody td, tbody th { border-bottom: 1px solid var(--line); }
tr.main th, tr.main td { font-weight: 700; }
tr.main th { color: var(--accent); }
tr.reference th, tr.reference td { color: var(--muted); font-style: italic; border-bottom: 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 34rem), 1fr));
  gap: 1rem; align-items: start; margin: 1rem 0; }
figure { margin: 0; background: #fff; border: 1px solid var(--line); border-radius: .5rem;
  padding: .4rem; overflow-x: auto; min-width: 0; }
figure svg { display: block; width: 100%; min-width: 34rem; max-width: 46rem; height: auto; }
figure:first-child { grid-row: span 2; }
details { margin: .5rem 0; max-width: 60rem; }
summary { cursor: pointer; padding: .2rem 0; }
details details { margin-left: 1rem; }
pre { overflow-x: auto; background: var(--card); border: 1px solid var(--line); padding: .7rem;
  border-radius: .4rem; font-size: .8rem; }
dt { font-weight: 600; margin-top: .6rem; }
dd { margin: 0 0 0 1rem; }
"""


def write(problems: Sequence[Problem], out: Path, judged: Sequence[Judged] = ()) -> Path:
    """Figures and CSV first, the page last: a page that exists is complete."""
    page = out if out.suffix.lower() in (".html", ".htm") else out / PAGE
    if page.is_dir():
        raise ValueError(f"{page}: is a folder; name a file that ends in .html or another folder")
    folder = page.parent / FIGURES
    sections = []
    for index, problem in enumerate(problems, start=1):
        name = f"{index}-{slug(problem.label)}"
        drawings = draw(problem, f"p{index}")
        for drawing in drawings:
            write_atomically(folder / f"{name}-{drawing.kind}.png", drawing.png)
        sections.append(section(problem, f"p{index}", drawings))
    write_atomically(folder / "summary.csv", encode(table.as_csv(problems)))
    if judged:
        write_atomically(folder / "claims.csv", encode(claims_table.as_csv(judged)))
        sections.insert(0, claims_table.as_html(judged))
    write_atomically(page, encode(document(problems, sections)))
    return page


def encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def slug(label: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", label.lower()).strip("-.")[:60] or "problem"


def document(problems: Sequence[Problem], sections: Sequence[str]) -> str:
    runs = sum(len(problem.runs) for problem in problems)
    size = f"{plural(runs, 'run')} on {plural(len(problems), 'problem')}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{TITLE}</title>
<style>{STYLE}{claims_table.STYLE}</style>
</head>
<body>
<header>
<h1>{TITLE}</h1>
<p>{ABOUT} <span class="muted">{size}.</span></p>
</header>
<main>
{overview(problems) if len(problems) > 1 else ""}
{"".join(sections)}
<section aria-labelledby="measures">
<h2 id="measures">What the measures mean</h2>
<details open="open"><summary>Definitions</summary>
{definitions()}
</details>
</section>
</main>
</body>
</html>
"""


def overview(problems: Sequence[Problem]) -> str:
    rows = "".join(
        f'<tr><th scope="row"><a href="#p{index}">{escape(problem.label)}</a></th>'
        f"<td>{escape(best_words(problem))}</td><td>{len(problem.runs)}</td></tr>\n"
        for index, problem in enumerate(problems, start=1)
    )
    return (
        '<nav aria-label="Problems" class="scroll"><table>'
        '<thead><tr><th scope="col">problem</th><th scope="col">best mean return</th>'
        f'<th scope="col">runs</th></tr></thead>\n<tbody>{rows}</tbody></table></nav>'
    )


def section(problem: Problem, name: str, drawings: Sequence[Drawing]) -> str:
    first, *others = headline(problem)
    charts = "".join(chart(drawing, f"{name}-{drawing.kind}") for drawing in drawings)
    more = f"<p>{escape(' '.join(others))}</p>" if others else ""
    return f"""<section aria-labelledby="{name}">
<h2 id="{name}">{escape(problem.label)}</h2>
<p class="headline">{escape(first)}</p>
{more}
<p class="muted">{escape(sizes(problem))}</p>
{html_table(problem)}
{f'<div class="charts">{charts}</div>' if charts else ""}
<details><summary>Every run: job and specification</summary>
{"".join(run_details(method, run) for method in problem.methods for run in method.runs)}
</details>
</section>
"""


def html_table(problem: Problem) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns(problem))
    rows = []
    for line in table.lines(problem):
        kind = "reference" if line.method is None else "main" if line.method.emphasised else "other"
        name, *cells = (escape(cell) for cell in line.cells)
        data = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr class="{kind}"><th scope="row">{name}</th>{data}</tr>\n')
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="Table: '
        f'{escape(problem.label)}"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def chart(drawing: Drawing, name: str) -> str:
    """The figure with words for those who do not see it."""
    words = escape(f"{drawing.title}. {drawing.description}")
    label = f'<svg role="img" aria-label="{words}"'
    svg = drawing.svg.replace("<svg", label, 1)
    start = svg.index(">") + 1
    svg = f"{svg[:start]}<title>{escape(drawing.title)}</title>{svg[start:]}"
    return f'<figure id="{name}">{svg}</figure>\n'


def run_details(method: Method, run: Run) -> str:
    content = json.dumps({"spec": run.spec, "facts": run.facts}, indent=1, ensure_ascii=False)
    job = escape(one_line(run.job))
    return (
        f"<details><summary>{escape(method.name)} <code>{job}</code></summary>"
        f"<pre>{escape(content)}</pre></details>\n"
    )


def definitions() -> str:
    items = (f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in DEFINITIONS.items())
    return f"<dl>{''.join(items)}</dl>"
