"""What is wrong with values: not finite, constant, twice, out of scale, not what they claim."""

import functools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rbve.audit._reading import place, without_observations
from rbve.audit.scan import Scan
from rbve.audit.verdict import Finding, listed
from rbve.data.check import faults
from rbve.data.dataset import Dataset

# Layers start for inputs of deviation about 1. Columns a hundred times as large drown the others,
# and Adam at 3e-4 has to undo the start.
_LARGE_DEVIATION = 100.0
# A column a thousandth as wide as its widest neighbour is not seen before the others are learned.
_SCALE_RATIO = 1e3
# Bytes are divided by 255 as pixels are. Pictures reach beyond this; codes and counts do not.
_DARKEST_PICTURE = 32
# Standing still is common; but no behaviour repeats state, action and reward in half its rows.
_REPEATED_ROWS = 0.4

_zeroed = functools.partial(np.nan_to_num, nan=0.0, posinf=0.0, neginf=0.0)
_STANDARDISE = (
    "standardise them, or convert from a CSV or Parquet log with a column each, which does it"
)


def findings(dataset: Dataset, scan: Scan) -> Iterator[Finding]:
    yield from _wrong_values(dataset, scan)
    yield from _odd_columns(dataset, scan)
    yield from _scale(dataset, scan)
    yield from _copies(scan)


def repaired(dataset: Dataset) -> Dataset:
    """Values an audit can go on with: unknown rewards are 0, unknown actions −1."""
    reward, action = np.asarray(dataset.reward), np.asarray(dataset.action)
    if not np.isfinite(reward).all():
        known = _zeroed(reward)
        sums = np.add.reduceat(known.astype(np.float64), dataset.offsets[:-1])
        lost = dataset.complete & ~np.isfinite(dataset.episode_return)
        returns = np.where(lost, sums, dataset.episode_return)
        dataset = replace(dataset, reward=known, episode_return=returns)
    unknown = (action < -1) | (action >= dataset.num_actions)
    return replace(dataset, action=np.where(unknown, -1, action)) if unknown.any() else dataset


def _wrong_values(dataset: Dataset, scan: Scan) -> Iterator[Finding]:
    """What is not finite, and what a store refuses: illegal actions, impossible propensities."""
    if scan.bad_rows:
        where = f" in {listed(scan.bad_columns)}" if scan.bad_columns else ""
        yield Finding(
            "observations not finite",
            f"values that are not finite in 32 bits in {scan.bad_rows:,} of {scan.rows:,} rows"
            f"{where}, first in {scan.bad_place}",
            "one such row turns every weight of the network into NaN",
            "fill the gaps, or drop those episodes, and convert again",
            level="stop",
        )
    reward = np.asarray(dataset.reward)
    if not np.isfinite(reward).all():
        yield Finding(
            "rewards not finite",
            f"{int(np.isnan(reward).sum()):,} NaN and {int(np.isinf(reward).sum()):,} infinite "
            f"rewards, first in {place(dataset, int(np.argmin(np.isfinite(reward))))}",
            "every V̂ before it in the episode is lost, and training diverges",
            "correct those rewards in the log, or take their episodes out of it, and convert again",
            level="stop",
        )
    known = {name: _zeroed(getattr(dataset, name)) for name in ("reward", "episode_return")}
    for fault in faults(replace(without_observations(dataset), **known)):
        more = f" ({fault.count:,} rows like it)" if fault.count > 1 else ""
        yield Finding(
            "values that cannot be",
            f"{place(dataset, fault.row)}: {fault.text}{more}",
            "such rows would train silently wrong",
            "repair the log there and convert it again",
            level="stop",
        )


def _odd_columns(dataset: Dataset, scan: Scan) -> Iterator[Finding]:
    """On a board or in a picture an entry may be constant; a named column should not."""
    constant = [column for column in scan.columns if column.low == column.high]
    # Of unnamed one-hot inputs a constant 0 is a state that was never visited, not a fault.
    one_hot = dataset.features is None and all(column.binary for column in scan.columns)
    if constant and dataset.obs.dtype != np.uint8 and not one_hot:
        values = [f"{column.name} = {column.low:g}" for column in constant]
        yield Finding(
            "constant columns",
            f"{len(constant)} of {len(scan.columns)} observation columns never change: "
            f"{listed(values)}",
            "they tell states apart in no way, and may be a failed join or a dead sensor",
            "check where they come from; if they mean nothing, name the other columns with "
            "`--observation` when converting",
        )
    if scan.duplicate_columns and dataset.obs.dtype != np.uint8:
        pairs = [f"{name} = {earlier}" for name, earlier in scan.duplicate_columns]
        yield Finding(
            "duplicate columns",
            f"{len(pairs)} of {len(scan.columns)} observation columns repeat another in every "
            f"row: {listed(pairs)}",
            "one of the two was probably meant to be something else",
            "check the column list; leave a copy out of `--observation` when converting",
        )


def _scale(dataset: Dataset, scan: Scan) -> Iterator[Finding]:
    if dataset.obs.dtype == np.uint8:
        if scan.high < _DARKEST_PICTURE and dataset.features is None:
            yield Finding(
                "bytes that are no pixels",
                f"observations are uint8 and reach from {scan.low:g} to {scan.high:g}",
                "bytes are divided by 255, which leaves these almost no difference",
                "write them as float32; or as columns of a CSV or Parquet log, codes with "
                "`--categorical`",
            )
        return
    if dataset.features is not None:
        return  # standardised when read
    wide = [column for column in scan.columns if column.deviation > _LARGE_DEVIATION]
    varying = [column for column in scan.columns if column.deviation > 0]
    if wide:
        shown = [f"{column.name} ± {column.deviation:.3g}" for column in wide]
        yield Finding(
            "columns out of scale",
            f"{len(wide)} of {len(scan.columns)} observation columns vary by more than "
            f"{_LARGE_DEVIATION:g}: {listed(shown)}",
            "networks take these values as they are, and learn slowly or not at all from them",
            _STANDARDISE,
        )
    elif varying:
        most = max(varying, key=lambda column: column.deviation)
        least = min(varying, key=lambda column: column.deviation)
        if most.deviation > _SCALE_RATIO * least.deviation:
            yield Finding(
                "columns out of scale",
                f"{most.name} varies by {most.deviation:.3g}, {least.name} by "
                f"{least.deviation:.3g}",
                "the network hardly sees the narrow column beside the wide one",
                _STANDARDISE,
            )


def _copies(scan: Scan) -> Iterator[Finding]:
    if scan.copies and not scan.chance_copies:
        yield Finding(
            "episodes logged twice",
            f"{scan.copies:,} of {scan.episodes:,} episodes equal an earlier one in every row, "
            f"though states hardly ever recur: {scan.copy_example}",
            "copies count double in training, and leak between training and validation",
            "take the copies out of the log and convert again; if behaviour and world are "
            "deterministic, know that they add nothing",
        )
    if scan.repeated_rows > _REPEATED_ROWS:
        yield Finding(
            "rows logged twice",
            f"{scan.repeated_rows:.0%} of decisions equal the one before: observation, action and "
            "reward",
            "a doubled row counts its reward twice and looks like an action without effect",
            "take repeated rows out of the log if the recorder wrote them twice; ignore this if "
            "the world truly stood still",
        )
