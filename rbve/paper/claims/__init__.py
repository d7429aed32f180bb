"""The paper's empirical claims, each with the rule that judges it here.

Rules and thresholds stood in these files before any row they judge was read, but for theory's and
what docs/studies.md lists. Claims about Atari and DeepMind Lab are judged on bsuite's environments
where their question can be asked there, and say so; once more on MinAtar's games and on levels with
memory, by the same rules, written down before those were run. A claim of theory is judged by its
experiment's runs, the others by final scores.
"""

from __future__ import annotations

from rbve.paper.claims import data, lab, ranking, scores, tables, theory, values
from rbve.paper.claims.claim import Claim

CLAIMS = (
    *scores.CLAIMS,
    *values.CLAIMS,
    *ranking.CLAIMS,
    *data.CLAIMS,
    *lab.CLAIMS,
    *theory.CLAIMS,
    *tables.CLAIMS,
)

__all__ = ["CLAIMS", "Claim"]
