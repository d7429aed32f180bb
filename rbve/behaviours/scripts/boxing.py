"""Boxing: keeps the opponent level and at arm's length, and punches every other step.

Bytes of the memory that matter: 32 and 34 the player's x and y, 33 and 35 the opponent's.
"""

import numpy as np

PLAYS = "atari:Boxing"
X, Y, OTHER_X, OTHER_Y = 32, 34, 33, 35
# Of the full action set, by where to go: right, down; 'fire' punches on the way.
MOVE = {
    (0, 0): 0, (0, -1): 2, (1, 0): 3, (-1, 0): 4, (0, 1): 5,
    (1, -1): 6, (-1, -1): 7, (1, 1): 8, (-1, 1): 9,
}  # fmt: skip
PUNCH = {way: 1 if way == (0, 0) else action + 8 for way, action in MOVE.items()}
ARM = 23  # where to stand, left or right of the opponent
SLACK_X, SLACK_Y = 2, 9  # off that place, and off level, without mending it
REACH_X, REACH_Y = 13, 23  # off them, and a punch may still hit


class Player:
    """One episode."""

    def __init__(self) -> None:
        self.punched = False  # a fist has to be drawn back first

    def act(self, ram: np.ndarray) -> int:
        x, y, other_x, other_y = (int(ram[k]) for k in (X, Y, OTHER_X, OTHER_Y))
        right, down = other_x - x, other_y - y
        right -= ARM if right > 0 else -ARM
        way = (towards(right, SLACK_X), towards(down, SLACK_Y))
        in_reach = abs(right) <= REACH_X and abs(down) <= REACH_Y
        self.punched = in_reach and not self.punched
        return (PUNCH if self.punched else MOVE)[way]


def towards(distance: int, slack: int) -> int:
    return 0 if abs(distance) <= slack else int(np.sign(distance))
