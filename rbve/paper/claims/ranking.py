"""What hangs on the ranking term's weight and numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

from rbve.paper.claims import FOR_ATARI, Claim
from rbve.paper.claims._words import CLOSE, LATER, OVERESTIMATION, quiet
from rbve.paper.judging.effects import Pick
from rbve.paper.judging.rules import better, similar

PLACE = 3
BASE = {
    "filter": "exponential",
    "normalise": "dataset",
    "form": "hinge2",
    "bounded": False,
    "lam": 0.005,
    "nu": 0.05,
    "beta": 0.5,
}
SECTION = "section 'Ranking regularization'"

_filters = partial(Claim, experiment="filters")
_strength = partial(Claim, here=FOR_ATARI, experiment="ranking_strength")


def _rbve(**changed: Any) -> Pick:
    return Pick("rbve", {**BASE, **changed})


NO_WEIGHT = {"no weight": _rbve(filter="none")}
LARGER = {f"λ {lam:g}": _rbve(lam=lam) for lam in (0.05, 0.5)}

CLAIMS = (
    _filters(
        "The exponential weight works best of the filters tried",
        SECTION,
        "better: R-BVE with the exponential weight − with the binary, the advantage filter; "
        "no noise, V̂ standardised",
        better(_rbve(), {name: _rbve(filter=name) for name in ("binary", "advantage")}, quiet),
    ),
    _filters(
        "Without a weight the ranking term does harm, since behaviour is not optimal",
        SECTION,
        "better: R-BVE with the exponential weight − with none; no noise",
        better(_rbve(), NO_WEIGHT, quiet),
    ),
    _filters(
        "Without a weight the ranking term can make values over-estimate",
        "appendix 'Pairwise Ranking Loss for Q-learning'",
        "better (lower): log₁₀(1 + over-estimation error) of R-BVE with the exponential weight − "
        f"with none; no noise; {LATER}",
        better(_rbve(), NO_WEIGHT, quiet, OVERESTIMATION, -1),
    ),
    _strength(
        "Ranking is robust to its strength λ",
        "section 'Experiments'",
        "similar: R-BVE at λ = .05, .5 − at .005 within ±10 points, no noise",
        similar(_rbve(), LARGER, quiet, CLOSE),
    ),
    _strength(
        "λ = .005 is the best choice on most tasks",
        "appendix 'Atari Hyperparameters'",
        "better: R-BVE at λ = .005 − at .05, .5, no noise",
        better(_rbve(), LARGER, quiet),
    ),
    Claim(
        "Ranking is robust to its margin ν",
        "section 'Experiments'",
        "similar: R-BVE at ν = .5 − at .05 within ±10 points, no noise",
        similar(_rbve(), {"ν 0.5": _rbve(nu=0.5)}, quiet, CLOSE),
        experiment="ranking_forms",
    ),
)
