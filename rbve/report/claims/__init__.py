"""The paper's empirical claims, each with the rule that judges it here.

Rules and thresholds stood in these files before the runs they judge, but for theory's. Claims
about Atari and DeepMind Lab are judged on bsuite's environments where their question can be asked
there, and say so; those about Atari once more on MinAtar's, by the same rules, written down before
MinAtar was run. A claim of theory is judged by its experiment's runs, the others by final scores.
"""

from __future__ import annotations

from rbve.report.claims import data, scores, tables, theory, values
from rbve.report.claims.claim import Claim

CLAIMS = (*scores.CLAIMS, *values.CLAIMS, *data.CLAIMS, *theory.CLAIMS, *tables.CLAIMS)

__all__ = ["CLAIMS", "Claim"]
