"""What hangs on the ranking term's weight and numbers."""

from __future__ import annotations

from typing import Any

from rbve.paper.claims.claim import CLOSE, FOR_ATARI, LATER, Claim, quiet
from rbve.paper.claims.rules import better, similar
from rbve.paper.effects import Pick
from rbve.report.statistics import logarithm

BASE = {
    "filter": "exponential",
    "normalise": "dataset",
    "form": "hinge2",
    "bounded": False,
    "lam": 0.005,
    "nu": 0.05,
    "beta": 0.5,
}


def rbve(**changed: Any) -> Pick:
    return Pick("rbve", {**BASE, **changed})


CLAIMS = (
    Claim(
        "The exponential weight works best of the filters tried",
        "section 'Ranking regularization'",
        "better: R-BVE with the exponential weight − with the binary, the advantage filter; "
        "no noise, V̂ standardised",
        lambda found: better(
            found,
            rbve(),
            {"binary": rbve(filter="binary"), "advantage": rbve(filter="advantage")},
            quiet,
        ),
        experiment="filters",
    ),
    Claim(
        "Without a weight the ranking term does harm, since behaviour is not optimal",
        "section 'Ranking regularization'",
        "better: R-BVE with the exponential weight − with none; no noise",
        lambda found: better(found, rbve(), {"no weight": rbve(filter="none")}, quiet),
        experiment="filters",
    ),
    Claim(
        "Without a weight the ranking term can make values over-estimate",
        "appendix 'Pairwise Ranking Loss for Q-learning'",
        "better (lower): log₁₀(1 + over-estimation error) of R-BVE with the exponential weight − "
        f"with none; no noise; {LATER}",
        lambda found: better(
            found,
            rbve(),
            {"no weight": rbve(filter="none")},
            quiet,
            "overestimation",
            -1,
            logarithm,
        ),
        experiment="filters",
    ),
    Claim(
        "Ranking is robust to its strength λ",
        "section 'Experiments'",
        "similar: R-BVE at λ = .05, .5 − at .005 within ±10 points, no noise",
        lambda found: similar(
            found, rbve(), {f"λ {lam:g}": rbve(lam=lam) for lam in (0.05, 0.5)}, quiet, CLOSE
        ),
        FOR_ATARI,
        experiment="ranking_strength",
    ),
    Claim(
        "λ = .005 is the best choice on most tasks",
        "appendix 'Atari Hyperparameters'",
        "better: R-BVE at λ = .005 − at .05, .5, no noise",
        lambda found: better(
            found, rbve(), {f"λ {lam:g}": rbve(lam=lam) for lam in (0.05, 0.5)}, quiet
        ),
        FOR_ATARI,
        experiment="ranking_strength",
    ),
    Claim(
        "Ranking is robust to its margin ν",
        "section 'Experiments'",
        "similar: R-BVE at ν = .5 − at .05 within ±10 points, no noise",
        lambda found: similar(found, rbve(), {"ν 0.5": rbve(nu=0.5)}, quiet, CLOSE),
        experiment="ranking_forms",
    ),
)
