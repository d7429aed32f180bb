"""Operations on arrays, which a program names. The same table serves NumPy and jax.numpy.

An operation is a name, the values it takes and its settings, which are JSON. `make` gives the
function of one: settings are read once, not at every call.
"""

from collections.abc import Callable, Mapping
from typing import Any

# Elementwise, by the name that both libraries have for it.
ELEMENTWISE = {
    "neg": "negative", "exp": "exp", "log": "log", "tanh": "tanh", "sqrt": "sqrt", "abs": "abs",
    "sign": "sign", "floor": "floor", "ceil": "ceil", "round": "rint", "not": "logical_not",
    "is_finite": "isfinite", "cos": "cos", "sin": "sin", "log1p": "log1p", "expm1": "expm1",
    "square": "square", "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide",
    "max": "maximum", "min": "minimum", "pow": "power", "eq": "equal", "ne": "not_equal",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    "and": "logical_and", "or": "logical_or", "where": "where",
}  # fmt: skip
_REDUCTIONS = {"sum": "sum", "amax": "max", "amin": "min", "all": "all", "any": "any"}
_DTYPES = ("bool", "int32", "int64", "float32")
_Settings = Mapping[str, Any]


def make(xp: Any, name: str, settings: _Settings) -> Callable[..., Any]:
    """The function of an operation; ValueError where there is none of that name."""
    if name in ELEMENTWISE:
        return getattr(xp, ELEMENTWISE[name])
    if name in _REDUCTIONS:
        return _reduction(getattr(xp, _REDUCTIONS[name]), settings)
    if name not in _OTHERS:
        raise ValueError(f"unknown operation {name!r}; written by a later version?")
    return _OTHERS[name](xp, settings)


def names() -> list[str]:
    return sorted({*ELEMENTWISE, *_REDUCTIONS, *_OTHERS})


def _reduction(function: Callable[..., Any], settings: _Settings) -> Callable[..., Any]:
    axes = tuple(settings["axes"])
    return lambda x: function(x, axis=axes)


def _cast(xp: Any, settings: _Settings) -> Callable[..., Any]:
    name = settings["dtype"]
    if name not in _DTYPES:
        raise ValueError(f"unknown type {name!r}")
    dtype = getattr(xp, name if name != "bool" else "bool_")
    return lambda x: x.astype(dtype)


def _slice(xp: Any, settings: _Settings) -> Callable[..., Any]:
    steps = zip(settings["start"], settings["stop"], settings["step"], strict=True)
    place = tuple(slice(*each) for each in steps)
    return lambda x: x[place]


def _pad(xp: Any, settings: _Settings) -> Callable[..., Any]:
    """Zeros around, or less of it where the number is negative."""
    widths = [(max(low, 0), max(high, 0)) for low, high in settings["widths"]]
    cut = tuple(slice(max(-low, 0), min(high, 0) or None) for low, high in settings["widths"])
    grows, cuts = any(map(any, widths)), any(each != slice(0, None) for each in cut)

    def pad(x: Any) -> Any:
        x = x[cut] if cuts else x
        return xp.pad(x, widths) if grows else x

    return pad


def _integer_pow(xp: Any, settings: _Settings) -> Callable[..., Any]:
    power = settings["power"]
    return lambda x: x**power


def _with(name: str, *fields: str) -> Callable[[Any, _Settings], Callable[..., Any]]:
    """A function of the library whose further arguments are settings."""

    def made(xp: Any, settings: _Settings) -> Callable[..., Any]:
        function = getattr(xp, name)
        further = [
            tuple(settings[field]) if isinstance(settings[field], list) else settings[field]
            for field in fields
        ]
        return lambda x: function(x, *further)

    return made


_OTHERS: dict[str, Callable[[Any, _Settings], Callable[..., Any]]] = {
    "matmul": lambda xp, settings: xp.matmul,
    "dot": lambda xp, settings: lambda a, b: xp.tensordot(a, b, settings["axes"]),
    "einsum": lambda xp, settings: lambda a, b: xp.einsum(settings["equation"], a, b),
    "cast": _cast,
    "reshape": _with("reshape", "shape"),
    "transpose": _with("transpose", "axes"),
    "broadcast": _with("broadcast_to", "shape"),
    "slice": _slice,
    "pad": _pad,
    "integer_pow": _integer_pow,
    "argmax": _with("argmax", "axis"),
    "argmin": _with("argmin", "axis"),
    "cumsum": _with("cumsum", "axis"),
    "concat": lambda xp, settings: lambda *parts: xp.concatenate(parts, axis=settings["axis"]),
}
