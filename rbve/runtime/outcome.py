"""From scores to a decision: the action, its probability, how far ahead it is, whether the data
supports it. The same code for NumPy and jax.numpy, so that exported graphs agree.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rbve import schema

BEHAVIOUR = "behaviour"  # the fallback that does what the log did most often in such a state
_EXCLUDED = -1e7  # scores below it are of actions that are illegal, or that a filter forbids
_FIELDS = {
    "epsilon": schema.FINITE, "temperature": schema.FINITE, "threshold": schema.FINITE,
    "fallback": (int, str, None),
}  # fmt: skip


@dataclass(frozen=True)
class Rules:
    """How a policy is put to use.

    Attributes:
        epsilon: Share of random legal actions.
        temperature: 0 = the best action; else actions by softmax(scores / temperature).
        threshold: Least probability, in the log, of an action that counts as supported.
        fallback: What is done without support: an action's id, "behaviour", or None for nothing
            else.
    """

    epsilon: float = 0.0
    temperature: float = 0.0
    threshold: float = 0.0
    fallback: int | str | None = None

    def __post_init__(self) -> None:
        for name, most in (("epsilon", 1.0), ("threshold", 1.0), ("temperature", float("inf"))):
            value = getattr(self, name)
            if not 0 <= value <= most or value == float("inf"):
                kind = "a share from 0 to 1" if most == 1 else "0 or more"
                raise ValueError(f"{name} is {kind}; got {value:g}")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(content: Any, actions: int, where: str) -> "Rules":
        schema.check(content, _FIELDS, where)
        rules = Rules(**{name: content[name] for name in _FIELDS})
        if isinstance(rules.fallback, str) and rules.fallback != BEHAVIOUR:
            raise ValueError(f"{where}: unknown fallback {rules.fallback!r}")
        if isinstance(rules.fallback, int) and not 0 <= rules.fallback < actions:
            raise ValueError(f"{where}: its fallback is no action")
        return rules


def choose(
    xp: Any, outputs: Mapping[str, Any], legal: Any, inside: Any, rules: Rules
) -> dict[str, Any]:
    """The part of `weigh` that acting needs: `action`, `supported`, `scores`."""
    scores = outputs["scores"]
    best, supported = xp.argmax(scores, axis=1), inside
    known = {}
    if "behaviour" in outputs:
        known = {"behaviour": outputs["behaviour"]}
        at_best = best[:, None] == xp.arange(scores.shape[1])
        own = xp.sum(xp.where(at_best, outputs["behaviour"], xp.float32(0)), axis=1)
        supported = supported & (own >= xp.float32(rules.threshold))
    action = best
    if rules.fallback is not None:
        action = xp.where(supported, best, _fallback(xp, outputs, best, legal, rules))
    return {"action": action, "supported": supported, "scores": scores, **known}


def weigh(
    xp: Any, outputs: Mapping[str, Any], legal: Any, inside: Any, rules: Rules
) -> dict[str, Any]:
    """What is decided of B states.

    Args:
        xp: numpy or jax.numpy.
        outputs: `scores` (B, A) and `q` (B, A); `behaviour` (B, A), the log's probabilities, of a
            policy that has a model of it.
        legal: (B, A) bool.
        inside: (B,) bool, which rows lie within the training data.
        rules: How the policy acts.

    Returns:
        Arrays of B rows: `action` ids, the best action or the fallback; `q`, `scores`,
        `probabilities` (B, A); `gap` between the two best scores, 0 if only one is possible;
        `supported`; and `behaviour` where it is known.
    """
    scores = outputs["scores"]
    places = xp.arange(scores.shape[1])
    at_best = xp.argmax(scores, axis=1)[:, None] == places
    chosen = choose(xp, outputs, legal, inside, rules)
    chances = _probabilities(xp, scores, at_best, legal, rules)
    if rules.fallback is not None:
        alone = (chosen["action"][:, None] == places).astype(xp.float32)
        chances = xp.where(chosen["supported"][:, None], chances, alone)
    second = xp.max(xp.where(at_best, xp.float32(-1e30), scores), axis=1)
    gap = xp.where(second <= xp.float32(_EXCLUDED), xp.float32(0), xp.max(scores, axis=1) - second)
    return {**chosen, "q": outputs["q"], "probabilities": chances, "gap": gap}


def _probabilities(xp: Any, scores: Any, at_best: Any, legal: Any, rules: Rules) -> Any:
    if rules.temperature:
        shifted = (scores - xp.max(scores, axis=1)[:, None]) / xp.float32(rules.temperature)
        chosen = xp.exp(shifted)
        chosen = chosen / xp.sum(chosen, axis=1)[:, None]
    else:
        chosen = at_best.astype(xp.float32)
    if not rules.epsilon:
        return chosen
    allowed = legal.astype(xp.float32)
    random = allowed / xp.sum(allowed, axis=1)[:, None]
    return xp.float32(1 - rules.epsilon) * chosen + xp.float32(rules.epsilon) * random


def _fallback(xp: Any, outputs: Mapping[str, Any], best: Any, legal: Any, rules: Rules) -> Any:
    """A named action, where it is illegal the policy's own."""
    if rules.fallback == BEHAVIOUR:
        return xp.argmax(outputs["behaviour"], axis=1)
    return xp.where(legal[:, int(rules.fallback or 0)], int(rules.fallback or 0), best)
