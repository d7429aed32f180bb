"""What a search varies: ranges and choices of fields and settings, by their names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rbve import algorithms
from rbve.registry import did_you_mean
from rbve.spec import layout_of
from rbve.sweep.config import field_names, parse_values

# Where nothing is said: settings that a search is worth, over what papers have tried and beyond.
USUAL: Mapping[str, str] = {
    "lam": "0.001..5,log", "alpha": "0.005..5,log", "threshold": "0.05..0.6",
    "expectile": "0.5..0.95", "temperature": "0.1..10,log",
}  # fmt: skip
_RATE = "3e-5..3e-3,log"
_FIXED = {"path", "steps", "every", "target_period", "holdout", "holdout_seed", "seed", "env",
          "algorithm", "eval_episodes", "fingerprint"}  # fmt: skip


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`."""

    low: float
    high: float
    log: bool = False
    whole: bool = False


Choice = Range | tuple[Any, ...]
Space = Mapping[str, Choice]


def parse(words: Sequence[str]) -> dict[str, Choice]:
    """NAME=LOW..HIGH, NAME=LOW..HIGH,log or NAME=A,B,C; ValueError names the word."""
    space: dict[str, Choice] = {}
    for word in words:
        name, equals, values = word.partition("=")
        name = name.replace("-", "_")
        if not equals or not name or not values:
            raise ValueError(f"--search takes NAME=LOW..HIGH or NAME=A,B,C; got {word!r}")
        if name in _FIXED:
            raise ValueError(f"--search: {name} is not searched; it has a flag of its own")
        if name in space:
            raise ValueError(f"--search names {name} twice")
        space[name] = _range(word, values) if ".." in values else _choices(name, word)
    return space


def _range(word: str, values: str) -> Range:
    bounds, _, scale = values.partition(",")
    low, _, high = bounds.partition("..")
    try:
        limits = float(low), float(high)
    except ValueError:
        raise ValueError(f"--search: {word!r} has no numbers around '..'") from None
    if scale not in ("", "log") or not limits[0] < limits[1] < float("inf"):
        raise ValueError(f"--search: {word!r} is no range; give LOW..HIGH or LOW..HIGH,log")
    if scale and limits[0] <= 0:
        raise ValueError(f"--search: {word!r}: a logarithmic range begins above 0")
    whole = not scale and all("." not in each and "e" not in each.lower() for each in (low, high))
    return Range(*limits, bool(scale), whole)


def _choices(name: str, word: str) -> tuple[Any, ...]:
    [(_, values)] = parse_values([word], "--search", fields=name in field_names()).items()
    if len(set(map(str, values))) < len(values):
        raise ValueError(f"--search: {word!r} names a value twice")
    return tuple(values)


def complete(chosen: Mapping[str, Choice], names: Sequence[str], fixed: Iterable[str]) -> Space:
    """With the usual ranges where none is given; ValueError for what no algorithm knows."""
    known = {name for each in names for name in settings_of(each)}
    if unknown := [each for each in (*chosen, *fixed) if each not in known | {*field_names()}]:
        hint = did_you_mean(unknown[0], [*known, *field_names()])
        raise ValueError(f"{unknown[0]}: neither a field nor a setting of these algorithms.{hint}")
    if chosen:
        return chosen
    usual = {"learning_rate": _RATE} | {k: v for k, v in USUAL.items() if k in known}
    return parse([f"{name}={values}" for name, values in usual.items() if name not in {*fixed}])


def settings_of(algorithm: str) -> set[str]:
    loaded = algorithms.load(algorithm)
    return {*loaded.config._fields, *loaded.options.__dataclass_fields__}


def suggest(trial: Any, space: Space, names: Sequence[str]) -> dict[str, Any]:
    """What an Optuna trial tries: the algorithm, and of the space what that one knows."""
    short = [Path(name).stem for name in names]
    which = short.index(trial.suggest_categorical("algorithm", short)) if len(names) > 1 else 0
    tried: dict[str, Any] = {"algorithm": names[which]}
    known = settings_of(names[which]) | {*layout_of().part_of}
    for name, choice in space.items():
        if name not in known:
            continue
        if isinstance(choice, Range):
            ask = trial.suggest_int if choice.whole else trial.suggest_float
            kind = int if choice.whole else float
            tried[name] = ask(name, kind(choice.low), kind(choice.high), log=choice.log)
        else:  # by their words, since a study keeps numbers and words alone
            words = [words_of(each) for each in choice]
            tried[name] = choice[words.index(trial.suggest_categorical(name, words))]
    return tried


def words_of(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
