"""Boxing: keeps the opponent level and at arm's length, and punches every other step.

Bytes of the memory that matter: 32 and 34 the player's x and y, 33 and 35 the opponent's.
"""

import numpy as np

PLAYS = "atari:Boxing"
X, Y, _OTHER_X, _OTHER_Y = 32, 34, 33, 35
# Of the full action set, by where to go: right, down; 'fire' punches on the way.
_MOVE = {
    (0, 0): 0, (0, -1): 2, (1, 0): 3, (-1, 0): 4, (0, 1): 5,
    (1, -1): 6, (-1, -1): 7, (1, 1): 8, (-1, 1): 9,
}  # fmt: skip
_PUNCH = {way: 1 if way == (0, 0) else action + 8 for way, action in _MOVE.items()}
_ARM = 23  # where to stand, left or right of the opponent
_SLACK_X, _SLACK_Y = 2, 9  # off that place, and off level, without mending it
_REACH_X, _REACH_Y = 13, 23  # off them, and a punch may still hit


class Player:
    """One episode."""

    def __init__(self) -> None:
        self.punched = False  # a fist has to be drawn back first

    def act(self, ram: np.ndarray) -> int:
        x, y, other_x, other_y = (int(ram[k]) for k in (X, Y, _OTHER_X, _OTHER_Y))
        right, down = other_x - x, other_y - y
        right -= _ARM if right > 0 else -_ARM
        way = (_towards(right, _SLACK_X), _towards(down, _SLACK_Y))
        in_reach = abs(right) <= _REACH_X and abs(down) <= _REACH_Y
        self.punched = in_reach and not self.punched
        return (_PUNCH if self.punched else _MOVE)[way]


def _towards(distance: int, slack: int) -> int:
    return 0 if abs(distance) <= slack else int(np.sign(distance))
