"""Anyone's policy as a file: a table of probabilities, a row per decision of a log."""

from pathlib import Path

import numpy as np

TABLES = (".npy", ".csv", ".parquet")


def read_table(file: Path, actions: tuple[str, ...]) -> np.ndarray:
    """(N, A) numbers of a .npy array, or of the columns that are named as the actions.

    Raises:
        ValueError: The file cannot be read, holds no numbers, or lacks the column of an action.
    """
    if not file.is_file():
        raise ValueError(f"{file}: no such file")
    return _of_array(file) if file.suffix == ".npy" else _of_columns(file, actions)


def _of_array(file: Path) -> np.ndarray:
    try:
        table = np.load(file, allow_pickle=False)
    except (ValueError, EOFError, OSError):
        raise ValueError(f"{file}: no array of numbers; write one with numpy.save") from None
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "biuf":
        raise ValueError(f"{file}: no array of numbers")
    return table


def _of_columns(file: Path, actions: tuple[str, ...]) -> np.ndarray:
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        table = csv.read_csv(file) if file.suffix == ".csv" else parquet.read_table(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{file}: cannot be read as a table ({error})") from None
    if missing := [name for name in actions if name not in table.column_names]:
        held = ", ".join(table.column_names[:8])
        raise ValueError(
            f"{file}: no column {missing[0]!r}; it needs one of probabilities for each of the "
            f"log's {len(actions)} actions, and has {held}"
        )
    columns = []
    for name in actions:
        column = table[name]
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise ValueError(f"{file}, column {name!r}: holds {column.type}, not numbers")
        columns.append(np.asarray(column.to_numpy(), np.float64))
    return np.stack(columns, axis=1)
