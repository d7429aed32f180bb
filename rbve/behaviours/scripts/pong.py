"""Pong: meets the ball where it will arrive, with the end of the paddle so that it leaves steeply.

Bytes of the memory that matter: 49 and 54 the ball's x and y (y 0 = no ball), 51 the player's
paddle. The player stands on the right; 'right' moves the paddle up, to smaller y.
"""

import itertools

import numpy as np

PLAYS = "atari:Pong"
BALL_X, BALL_Y, PADDLE = 49, 54, 51
STAY, SERVE, UP, DOWN = 0, 1, 2, 3  # of the minimal action set
PADDLE_X = 190  # where the paddle meets the ball
TOP, BOTTOM = 44.5, 206.5  # walls, as the ball's y tells them
MIDDLE = 122.0
AIM = -2.0  # paddle minus ball: −17 to 6 meets it, and both ends send it off steeply
MOVES = (8.5, 10.5, 3.0)  # what one step's push adds to y in that step and the two after it

RISK = 15.0  # variance of what a push does, under sticky actions

# All pushes of the next steps, −1 up, 1 down; ties go to few pushes, and to early ones.
AHEAD = 5
PLANS = np.array(
    sorted(
        itertools.product((0, 1, -1), repeat=AHEAD),
        key=lambda plan: (np.count_nonzero(plan), [push == 0 for push in plan]),
    )
)
FULL = np.cumsum(MOVES)


class Player:
    """One episode."""

    def __init__(self) -> None:
        self.ball: tuple[int, int] | None = None  # where it was one step ago
        self.pushes = (0, 0)  # of the last two steps, the latest first

    def act(self, ram: np.ndarray) -> int:
        x, y, paddle = (int(ram[k]) for k in (BALL_X, BALL_Y, PADDLE))
        before, self.ball = self.ball, ((x, y) if y else None)
        if not y:
            self.pushes = (0, 0)
            return SERVE
        goal, steps = MIDDLE, AHEAD
        if before is not None and x > before[0]:
            goal, steps = arrival(before, (x, y))
            goal += AIM
        push = self.push(goal - paddle, steps)
        self.pushes = (push, self.pushes[0])
        return (STAY, DOWN, UP)[push]

    def push(self, distance: float, steps: int) -> int:
        """The first push of the plan that comes closest after so many steps."""
        ahead = min(max(steps, 1), AHEAD)
        # A push that is k steps old when the ball arrives has moved FULL[k].
        age = np.arange(ahead - 1, -1, -1) if steps <= AHEAD else np.full(ahead, len(FULL) - 1)
        reach = PLANS[:, :ahead] @ FULL[np.minimum(age, len(FULL) - 1)]
        old = sum(
            push * (FULL[min(k + ahead, len(FULL) - 1)] - FULL[k - 1])
            for k, push in enumerate(self.pushes, start=1)
        )
        # Sticky actions make a push uncertain; early ones can still be corrected.
        risk = RISK * np.count_nonzero(PLANS[:, :ahead], axis=1) * (steps <= AHEAD)
        return int(PLANS[np.argmin((reach + old - distance) ** 2 + risk), 0])


def arrival(before: tuple[int, int], now: tuple[int, int]) -> tuple[float, int]:
    """The y at which a ball that comes nearer reaches the paddle, walls included, and when."""
    steps = max((PADDLE_X - now[0]) / (now[0] - before[0]), 0.0)
    height = BOTTOM - TOP
    straight = now[1] + steps * (now[1] - before[1]) - TOP
    folded = abs(straight) % (2 * height)
    return TOP + min(folded, 2 * height - folded), int(np.ceil(steps))
