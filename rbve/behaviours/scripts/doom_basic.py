"""ViZDoom's basic: steps to where the monster is ahead, and shoots."""

import numpy as np

PLAYS = "vizdoom:basic"
_LEFT, _RIGHT, _ATTACK = 0, 1, 2
_AHEAD = 20  # units aside at which a shot still hits


class Player:
    """One episode. The view is along x, and y grows to the left."""

    def act(self, ram: np.ndarray) -> int:
        (_, own, _), (_, monster, _) = ram[:2]
        if abs(monster - own) <= _AHEAD:
            return _ATTACK
        return _LEFT if monster > own else _RIGHT
