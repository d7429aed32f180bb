"""MinAtar, settings: which of each method's sweep is best on a game's recording kept for that?

What it finds is written into FROZEN (_minatar.py), whose settings the other MinAtar experiments
have on every game. Seeds from 100 on are recorded for this alone.
"""

from rbve.paper.experiments._methods import TUNED
from rbve.paper.experiments._minatar import games, tuning

EXPERIMENT = tuning(
    question="With which setting does each method score best on breakout?",
    paper="Appendix 'Atari Hyperparameters': tuned on nine games, frozen for 37; here MinAtar",
    data=games(("minatar:breakout",), first=100),
    methods=TUNED,
    against="tried",
    measures=("normalised_return", "overestimation"),
)
