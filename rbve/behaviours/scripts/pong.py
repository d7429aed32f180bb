"""Pong: meets the ball where it will arrive, with the end of the paddle so that it leaves steeply.

Bytes of the memory that matter: 49 and 54 the ball's x and y (y 0 = no ball), 51 the player's
paddle. The player stands on the right; 'right' moves the paddle up, to smaller y.
"""

import itertools

import numpy as np

PLAYS = "atari:Pong"
_BALL_X, _BALL_Y, _PADDLE = 49, 54, 51
STAY, SERVE, UP, DOWN = 0, 1, 2, 3  # of the minimal action set
_PADDLE_X = 190  # where the paddle meets the ball
_TOP, _BOTTOM = 44.5, 206.5  # walls, as the ball's y tells them
_MIDDLE = 122.0
_AIM = -2.0  # paddle minus ball: −17 to 6 meets it, and both ends send it off steeply
_MOVES = (8.5, 10.5, 3.0)  # what one step's push adds to y in that step and the two after it

_RISK = 15.0  # variance of what a push does, under sticky actions

# All pushes of the next steps, −1 up, 1 down; ties go to few pushes, and to early ones.
_AHEAD = 5
_PLANS = np.array(
    sorted(
        itertools.product((0, 1, -1), repeat=_AHEAD),
        key=lambda plan: (np.count_nonzero(plan), [push == 0 for push in plan]),
    )
)
_FULL = np.cumsum(_MOVES)


class Player:
    """One episode."""

    def __init__(self) -> None:
        self.ball: tuple[int, int] | None = None  # where it was one step ago
        self.pushes = (0, 0)  # of the last two steps, the latest first

    def act(self, ram: np.ndarray) -> int:
        x, y, paddle = (int(ram[k]) for k in (_BALL_X, _BALL_Y, _PADDLE))
        before, self.ball = self.ball, ((x, y) if y else None)
        if not y:
            self.pushes = (0, 0)
            return SERVE
        goal, steps = _MIDDLE, _AHEAD
        if before is not None and x > before[0]:
            goal, steps = arrival(before, (x, y))
            goal += _AIM
        push = self.push(goal - paddle, steps)
        self.pushes = (push, self.pushes[0])
        return (STAY, DOWN, UP)[push]

    def push(self, distance: float, steps: int) -> int:
        """The first push of the plan that comes closest after so many steps."""
        ahead = min(max(steps, 1), _AHEAD)
        # A push that is k steps old when the ball arrives has moved FULL[k].
        age = np.arange(ahead - 1, -1, -1) if steps <= _AHEAD else np.full(ahead, len(_FULL) - 1)
        reach = _PLANS[:, :ahead] @ _FULL[np.minimum(age, len(_FULL) - 1)]
        old = sum(
            push * (_FULL[min(k + ahead, len(_FULL) - 1)] - _FULL[k - 1])
            for k, push in enumerate(self.pushes, start=1)
        )
        # Sticky actions make a push uncertain; early ones can still be corrected.
        risk = _RISK * np.count_nonzero(_PLANS[:, :ahead], axis=1) * (steps <= _AHEAD)
        return int(_PLANS[np.argmin((reach + old - distance) ** 2 + risk), 0])


def arrival(before: tuple[int, int], now: tuple[int, int]) -> tuple[float, int]:
    """The y at which a ball that comes nearer reaches the paddle, walls included, and when."""
    steps = max((_PADDLE_X - now[0]) / (now[0] - before[0]), 0.0)
    height = _BOTTOM - _TOP
    straight = now[1] + steps * (now[1] - before[1]) - _TOP
    folded = abs(straight) % (2 * height)
    return _TOP + min(folded, 2 * height - folded), int(np.ceil(steps))
