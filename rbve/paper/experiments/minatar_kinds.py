"""MinAtar, kinds of data that the field uses: final, expert, noisy expert, random.

Not the paper's, and no claim is judged by it. The numbers of episodes aim at as many transitions
of each kind as `final` has: random games of breakout last ten steps.
"""

from rbve.paper.experiments._methods import fixed
from rbve.paper.experiments._minatar import experiment, games

_BREAKOUT = ("minatar:breakout",)

EXPERIMENT = experiment(
    question="Which method learns best from an expert's games, a noisy one's, or random play?",
    paper="Not in the paper: the kinds of data that offline RL's benchmarks have; here MinAtar",
    data=(
        *games(_BREAKOUT),
        *games(_BREAKOUT, expert=0.0, episodes=2_000),
        *games(_BREAKOUT, expert=0.25, episodes=10_000),
        *games(_BREAKOUT, expert=1.0, episodes=50_000),
    ),
    methods=tuple(map(fixed, ("bc", "filtered_bc", "dqn", "cql", "bcq", "bve", "rbve", "rdqn"))),
    against="kind",
    measures=("normalised_return", "return", "overestimation"),
)
