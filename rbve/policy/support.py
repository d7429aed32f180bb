"""What a policy is shipped with so that it can say where the log gives a decision no support."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Support:
    """A model of the log's behaviour, and what is done where it would hardly do as the policy does.

    Attributes:
        behaviour: A policy that clones the log.
        temperature: Its logits are divided by it, which makes them probabilities.
        threshold: Least of these probabilities at which an action counts as supported.
        fallback: Done instead without support: the id of an action, "behaviour" for what the log
            does most often in such a state; None = the policy's action all the same.
    """

    behaviour: Any
    temperature: float = 1.0
    threshold: float = 0.05
    fallback: int | str | None = None
