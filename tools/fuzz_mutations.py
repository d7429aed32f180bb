"""Ways to damage bytes, text and JSON, each drawn from a random.Random."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

# Numbers at which counts, sizes and signs change their meaning.
EDGES = [0, 1, 2, 3, 7, 127, 128, 255, 256, 32767, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1]
EDGES += [2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
FLOATS = [float("nan"), float("inf"), -float("inf"), -0.0, 1e-320, 1e300, 3e38, 0.5, -1.0]
WORDS = ["", " ", "a", "NaN", "inf", "null", "-1", "1e999", "0x10", "٣", "é", "\0", "a" * 300]
WORDS += ['"', "'", "\n", "\ufeff", "🎲", "../../x", "/dev/zero", "<f4", "|O", "|S3", "float32"]


def damage(rng: Random, data: bytes) -> bytes:
    """A few changes to bytes."""
    result = data
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 5, 8])):
        result = rng.choice(BYTE_CHANGES)(rng, bytearray(result))
    return result


def place(rng: Random, data: bytearray, size: int = 1) -> int:
    """Where to change something; rather not in the empty stretches that some formats have."""
    at = 0
    for _ in range(4):
        at = rng.randrange(max(1, len(data) - size + 1))
        if any(data[at : at + size]):
            break
    return at


def flip_bit(rng: Random, data: bytearray) -> bytes:
    if data:
        data[place(rng, data)] ^= 1 << rng.randrange(8)
    return bytes(data)


def set_byte(rng: Random, data: bytearray) -> bytes:
    if data:
        data[place(rng, data)] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
    return bytes(data)


def write_number(rng: Random, data: bytearray) -> bytes:
    """A number of any width over whatever was there; many are lengths, counts or offsets."""
    size, code = rng.choice([(1, "B"), (2, "H"), (4, "I"), (8, "Q"), (4, "f"), (8, "d")])
    if code in "fd":
        value = rng.choice(FLOATS)
        packed = struct.pack("<" + code, max(min(value, 3e38), -3e38) if code == "f" else value)
    else:
        packed = struct.pack(rng.choice("<>") + code, rng.choice(EDGES) % (1 << 8 * size))
    at = place(rng, data, size)
    data[at : at + size] = packed
    return bytes(data)


def shift_number(rng: Random, data: bytearray) -> bytes:
    """A number a little larger or smaller than it was."""
    size, code = rng.choice([(1, "B"), (2, "H"), (4, "I"), (8, "Q")])
    if len(data) >= size:
        order = rng.choice("<>")
        at = place(rng, data, size)
        (value,) = struct.unpack_from(order + code, data, at)
        value = (value + rng.choice([-8, -2, -1, 1, 2, 8, 64])) % (1 << 8 * size)
        struct.pack_into(order + code, data, at, value)
    return bytes(data)


def remove(rng: Random, data: bytearray) -> bytes:
    at = place(rng, data)
    del data[at : at + rng.choice([1, 1, 2, 4, 8, 64, len(data) // 3 + 1])]
    return bytes(data)


def insert(rng: Random, data: bytearray) -> bytes:
    at = place(rng, data)
    data[at:at] = rng.choice([rng.randbytes(rng.choice([1, 2, 4, 8, 40])), bytes(8), b"\xff" * 8])
    return bytes(data)


def splice(rng: Random, data: bytearray) -> bytes:
    """A stretch copied over another place."""
    size = rng.choice([1, 4, 8, 32, 200])
    start, at = place(rng, data, size), place(rng, data, size)
    data[at : at + size] = data[start : start + size]
    return bytes(data)


def cut(rng: Random, data: bytearray) -> bytes:
    return bytes(data[: rng.randrange(len(data) + 1)])


BYTE_CHANGES: list[Callable[[Random, bytearray], bytes]] = [
    flip_bit,
    flip_bit,
    set_byte,
    write_number,
    write_number,
    shift_number,
    shift_number,
    remove,
    insert,
    splice,
    cut,
]


# JSON


def damage_json(rng: Random, content: Any) -> bytes:
    """The text of the content after a few changes to its values, or to the text itself."""
    if rng.random() < 0.15:
        return damage(rng, json.dumps(content).encode())
    content = copy.deepcopy(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        content = change_value(rng, content)
    return json.dumps(content).encode("utf-8", "surrogatepass")


def change_value(rng: Random, content: Any) -> Any:
    places: list[tuple[Any, Any]] = []
    collect(content, places)
    if not places:
        return odd_value(rng, content)
    parent, key = rng.choice(places)
    choice = rng.random()
    if choice < 0.2:
        del parent[key]
    elif choice < 0.3 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    elif choice < 0.4:
        other, where = rng.choice(places)
        parent[key] = copy.deepcopy(other[where])
    else:
        parent[key] = odd_value(rng, parent[key])
    return content


def collect(content: Any, places: list[tuple[Any, Any]]) -> None:
    """(container, key) of every value inside; JSON kept as text in a string is left as it is."""
    items: Any = ()
    if isinstance(content, dict):
        items = content.items()
    elif isinstance(content, list):
        items = enumerate(content)
    for key, value in items:
        places.append((content, key))
        collect(value, places)


def odd_value(rng: Random, value: Any) -> Any:
    if isinstance(value, str) and value[:1] == "{" and rng.random() < 0.8:  # JSON within JSON
        try:
            content = json.loads(value)
        except ValueError:  # damaged already
            return damage(rng, value.encode()).decode("utf-8", "replace")
        return damage_json(rng, content).decode("utf-8", "replace")
    if type(value) in (int, float) and abs(value) < 1e300 and rng.random() < 0.6:
        return rng.choice([value + 1, value - 1, -value, value * 2, float(value), str(value)])
    return rng.choice(
        [
            None,
            True,
            [],
            {},
            [value],
            {"a": value},
            rng.choice(EDGES),
            -rng.choice(EDGES),
            rng.choice(FLOATS),
            rng.choice(WORDS),
            10**400,
        ]
    )


# Tables as text


def damage_table(rng: Random, data: bytes) -> bytes:
    """Cells, columns and lines of a CSV changed; sometimes any bytes."""
    if rng.random() < 0.2:
        return damage(rng, data)
    rows = [line.split(",") for line in data.decode().splitlines()]
    for _ in range(rng.choice([1, 1, 2, 3])):
        row = rng.choice(rows)
        change = rng.randrange(10)
        if change < 3:
            row[rng.randrange(len(row))] = odd_cell(rng)
        elif change == 3:
            column = rng.randrange(len(row))
            for each in rows[rng.randrange(2) :]:
                each[min(column, len(each) - 1)] = odd_cell(rng)
        elif change == 4:
            rows.insert(rng.randrange(len(rows) + 1), list(row))
        elif change == 5 and len(rows) > 1:
            rows.remove(row)
        elif change == 6:
            first, second = rng.randrange(len(rows)), rng.randrange(len(rows))
            rows[first], rows[second] = rows[second], rows[first]
        elif change > 7:
            column = rng.randrange(len(row))
            row[column] = rng.choice(rng.choice(rows)[column : column + 1] or [""])
        else:
            row.insert(rng.randrange(len(row) + 1), odd_cell(rng))
    return rng.choice(["\n", "\n", "\n", "\r\n"]).join(map(",".join, rows)).encode()


def odd_cell(rng: Random) -> str:
    number = rng.choice([*EDGES, *FLOATS, -1, 0.25])
    return rng.choice([str(number), str(number), *WORDS, "True", "false", "[1,2]", "2020-01-01"])
