"""A format's own options: flags, keywords and keys of a TOML file, from its one file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import tyro

import rbve
from rbve.cli import _formats
from rbve.data import formats, load

FORMAT = '''
"""Lines of numbers, each an episode of one decision."""
from dataclasses import dataclass
import numpy as np
from rbve.data.dataset import Dataset, Episode
from rbve.data.source import parts_of


@dataclass(frozen=True)
class Options:
    scale: float = 1.0  # of rewards
    actions: int | None = None  # how many there are


def recognises(path):
    return path.suffix == ".lines"


def read(path, options=Options(), on_fault=None):
    values = [float(line) for line in path.read_text().split()]
    episodes = [Episode.from_steps([[v], [v]], [0], [v * options.scale], True) for v in values]
    return parts_of(Dataset.from_episodes(episodes, options.actions or 1))
'''


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lines.py").write_text(FORMAT)
    names = [*formats.names(), "lines"]
    monkeypatch.setattr(formats, "names", lambda: names)
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "rbve.data.formats.lines", raising=False)
    path = tmp_path / "some.lines"
    path.write_text("1\n2\n")
    return path


def test_options_are_keywords(lines: Path, tmp_path: Path) -> None:
    assert load(lines, scale=3.0).episode_return.tolist() == [3, 6]
    assert rbve.convert(lines, tmp_path / "store", scale=2.0, actions=4).num_actions == 4
    assert rbve.inspect(lines, scale=0.5).to_json()["episodes"] == 2
    with pytest.raises(ValueError, match=r"unknown option 'scael'\. Did you mean 'scale'"):
        load(lines, scael=3.0)
    with pytest.raises(ValueError, match="'reward' is a choice for csv, parquet, shards data"):
        load(lines, reward="x")


def test_options_are_flags(lines: Path, tmp_path: Path) -> None:
    kind = _formats.flags()
    options = tyro.cli(tyro.conf.OmitArgPrefixes[kind], args=["--scale", "2"])  # type: ignore[misc, valid-type]
    assert _formats.chosen(lines, None, options, None) == {"scale": 2.0}
    # A flag that logs have too goes to the format that reads.
    options = tyro.cli(tyro.conf.OmitArgPrefixes[kind], args=["--actions", "2"])  # type: ignore[misc, valid-type]
    assert _formats.chosen(lines, None, options, None) == {"actions": ("2",)}


def test_options_are_keys_of_a_file(lines: Path, tmp_path: Path) -> None:
    toml = tmp_path / "options.toml"
    toml.write_text("scale = 2.5\nactions = 3\n")
    nothing = _formats.flags()()
    choices = _formats.chosen(lines, None, nothing, toml)
    assert load(lines, options=choices).episode_return.tolist() == [2.5, 5]
    toml.write_text('scale = "much"\n')
    with pytest.raises(
        ValueError, match=r"options\.toml: option 'scale' takes a number; got 'much'"
    ):
        _formats.chosen(lines, None, nothing, toml)
    store = tmp_path / "data.npz"
    rbve.data.write(load(lines), store)
    with pytest.raises(ValueError, match="npz data takes no options; leave --columns out"):
        _formats.chosen(store, None, nothing, toml)
