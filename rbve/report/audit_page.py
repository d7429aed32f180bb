"""An audit as one self-contained HTML page: verdict, findings, figures."""

from pathlib import Path

from markupsafe import Markup

from rbve.audit import WORDS, Audit
from rbve.audit.support import ENOUGH
from rbve.audit.weights import CLIPPED, EFFECTIVE
from rbve.files import write_atomically
from rbve.report.audit_facts import facts, short
from rbve.report.audit_figures import action_rows, figures
from rbve.report.page import encode
from rbve.report.render import web, whole

_COLUMNS_SHOWN = 60  # of the observation
_ACTIONS_LISTED = 500  # in the table of those that figures do not show in full


def write(audit: Audit, path: str | Path, title: str) -> Path:
    """Write the page; the file is whole or absent."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name a file that ends in .html")
    write_atomically(path, encode(document(audit, title)))
    return path


def document(audit: Audit, title: str) -> str:
    """The page's HTML."""
    weights, columns = audit.weights, audit.scan.columns[:_COLUMNS_SHOWN]
    effects = weights.effects if weights.recommended else ()
    mark = {True: " (recommended)", False: ""}
    return whole(
        "audit.jinja",
        figures(audit),
        title=f"Audit of {title}",
        audit_style=Markup(web("audit.css")),
        audit=audit,
        words=WORDS,
        sentence=_sentence,
        facts=facts(audit),
        actions=_actions(audit),
        weights=[
            (
                f"β = {each.beta:g}, {each.normalise}{mark[each == weights.recommended]}",
                *(f"{each.clipped:.1%}", f"{each.effective:.0%}", f"{each.half:.1%}"),
                "yes" if each.useful else "no",
            )
            for each in effects
        ],
        chosen=["chosen" * (each == weights.recommended) for each in weights.effects],
        rule=_RULE,
        columns=[
            (each.name, *map(short, (each.low, each.high, each.mean, each.deviation)))
            for each in columns
        ],
        meanings=_DEFINITIONS,
    )


_RULE = (
    f"Useful: an effective share of at least {EFFECTIVE:.0%} and at most {CLIPPED:.0%} of rows "
    "at the cap. Recommended: the β asked for if it is useful, else the smallest from .5 on."
)

_DEFINITIONS = {
    "V̂(s)": "Discounted sum of the rewards that followed s in its episode; for a fragment, the "
    "return of its episode.",
    "w(s)": "exp((V̂(s) − mean)/β), at most the cap: how much a state counts in R-BVE's ranking "
    "term. With normalise=dataset V̂ is divided by its deviation first; normalise=none is the "
    "paper's raw formula.",
    "Effective share": "(Σw)² / (n Σw²): 1 where all rows count alike, near 0 where few count.",
    "Regions": "Cells of like states, by k-means on standardised observations of a sample. They "
    "are coarse: within one, behaviour looks more varied than it is in each state.",
    "Coverage": f"Share of legal (state, action) pairs, weighed by visits, with {ENOUGH} rows or "
    "more of that action in the state's region.",
    "Entropy of behaviour": "Of the action within a region, as a share of that of uniform choice "
    "among legal actions.",
    "Reward shift": "Whether the step before or after explains the rewards better than their own "
    "step does, by regressions scored on episodes they have not seen.",
    "Horizon": "1/(1 − γ) steps: what lies further off counts for less than 37%.",
}


def _sentence(words: str) -> str:
    # A path keeps its case.
    first = words.split(" ", 1)[0]
    start = words[:1] if "." in first or "/" in first else words[:1].upper()
    return f"{start}{words[1:]}."


def _actions(audit: Audit) -> list[tuple[str, str, str]]:
    """Every action with its full name, where the figures do not tell them."""
    names, counts = audit.actions, audit.support.counts
    drawn = action_rows(names, counts)
    if all(row.label == row.name and len(row.members) == 1 for row in drawn):
        return []
    total = max(sum(counts), 1)
    order = sorted(range(len(names)), key=lambda action: -counts[action])
    return [
        (names[k], f"{counts[k]:,}", f"{counts[k] / total:.2%}") for k in order[:_ACTIONS_LISTED]
    ]
