"""Adam (Kingma and Ba, 2015), the paper's."""

from collections.abc import Callable
from typing import Any

import optax

FLAT = True


def optimiser(options: Any) -> Callable[[Any], optax.GradientTransformation]:
    return optax.adam
