"""What a JSON file has to hold, checked where it is read: a wrong field is one line that names it.

A schema is a type (float: any number, whole ones too), FINITE (such a number, but no NaN or
infinity), None for null, a tuple of alternatives, a list with the schema of every item, or a dict
with the schema of every field. A field whose name ends in "?" may be absent; "*" stands for every
field that is not named.
"""

import sys
from typing import Any

Schema = Any
LARGEST = 2**63 - 1  # of whole numbers; more digits are damage, and overflow where they are used
INT32 = 2**31 - 1  # steps and seeds are counted in 32 bits on the device
MAX_WIDTH = 65_536  # units per layer; more is a slip of the finger
FINITE = "finite"
NAMES = {
    str: "text", bool: "true or false", int: "a whole number", float: "a number", list: "a list",
    dict: "an object", FINITE: "a finite number", None: "null",
}  # fmt: skip


def check(content: Any, schema: Schema, where: str, field: str = "") -> None:
    """Raise ValueError, opened by `where`, unless the content is as the schema says."""
    alternatives = schema if isinstance(schema, tuple) else (schema,)
    fitting = [each for each in alternatives if fits(content, each)]
    if not fitting:
        kinds = (type(each) if isinstance(each, list | dict) else each for each in alternatives)
        kind = " or ".join(dict.fromkeys(NAMES[each] for each in kinds))
        shown = repr(content) if len(repr(content)) <= 40 else f"{repr(content)[:40]}…"
        raise ValueError(f"{where}: {field or 'the content'} must be {kind}; got {shown}")
    schema = fitting[0]
    if isinstance(schema, list):
        for index, item in enumerate(content):
            check(item, schema[0], where, f"{field}[{index}]")
    elif isinstance(schema, dict):
        inside = f"{field}." if field else ""
        named = {name.removesuffix("?"): name for name in schema if name != "*"}
        for key, name in named.items():
            if key in content:
                check(content[key], schema[name], where, inside + key)
            elif not name.endswith("?"):
                raise ValueError(f"{where}: {inside}{key} is missing")
        for key in content.keys() - named if "*" in schema else ():
            check(content[key], schema["*"], where, inside + key)


def fits(content: Any, schema: Schema) -> bool:
    """Whether it is of the kind, whatever is inside."""
    if schema is None:
        return content is None
    if schema is float:
        return type(content) is float or is_finite(content)
    if schema == FINITE:
        return is_finite(content)
    if schema is int:
        return type(content) is int and abs(content) <= LARGEST
    kind = schema if isinstance(schema, type) else type(schema)
    return type(content) is kind


def is_finite(value: Any) -> bool:
    # A whole number may have more digits than a float can count.
    return type(value) in (int, float) and abs(value) <= sys.float_info.max
