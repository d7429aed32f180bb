"""Shards, shipped policies and stores may name code: nothing of it is imported or executed."""

from __future__ import annotations

import io
import json
import pickle
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import run
from support.policies import random_policy

import rbve
from rbve.data import Dataset, Episode, write
from rbve.runtime import folder
from rbve.tensors import read_tensors, write_tensors

ROOT = Path(__file__).parent.parent
ROLES = ("--episode", "visit", "--action", "did", "--reward", "paid", "--observation", "age")


class Marked:
    """Read from a pickle it imports the module."""

    def __reduce__(self) -> Any:
        return __import__, ("marked",)


def rows(visit: str) -> pa.Table:
    columns = {"visit": [visit] * 3, "did": ["a", "b", "a"], "paid": [0.0, 1.0, 0.5]}
    return pa.table(columns | {"age": [1.0, 2.0, 3.0]})


def test_shards_with_a_pickle_and_a_module_beside_them(marker: Path, tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    for i in range(2):
        pq.write_table(rows(f"v{i}"), shards / f"{i}.parquet")
    (shards / "2.pkl").write_bytes(pickle.dumps(Marked()))
    (shards / "__init__.py").write_text("import marked\n")
    done = run("convert", shards, tmp_path / "store", *ROLES)
    assert done.code in (0, 2)
    assert not marker.exists()
    pickled = run("convert", shards / "2.pkl", tmp_path / "other", *ROLES)
    assert pickled.code == 2
    assert pickled.err.count("\n") == 1
    assert not marker.exists()


def test_a_shard_whose_type_is_a_pickle(marker: Path, tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    table = rows("v0")
    own = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(Marked()),
    }
    age = pa.field("age", pa.float64(), metadata=own)
    schema = table.schema.set(table.schema.get_field_index("age"), age)
    pq.write_table(pa.Table.from_arrays(table.columns, schema=schema), shards / "0.parquet")
    assert run("convert", shards, tmp_path / "store", *ROLES).code in (0, 2)
    assert not marker.exists()


def test_a_folder_of_stores_that_names_an_environment(marker: Path, tmp_path: Path) -> None:
    obs, action = np.arange(4.0)[:, None], np.array([0, 1, 1, -1])
    episode = Episode(obs, action, np.array([1.0, 0, 1, 0]), True)
    for i in range(2):
        data = Dataset.from_episodes([episode] * 2, ("0", "1"), {"env": "gymnasium:marked:X-v0"})
        write(data, tmp_path / "stores" / f"{i}")
    done = run("train", tmp_path / "stores", "--steps", 4, "--out", tmp_path / "runs")
    assert done.code == 2
    assert not marker.exists()


def shipped(place: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Path:
    """An exported policy with other content and a checksum that is right."""
    rbve.export(random_policy("rbve"), place)
    content = json.loads((place / folder.DESCRIPTION).read_text())
    with np.load(place / folder.ARRAYS) as held:
        arrays: dict[str, Any] = dict(held)
    change(content, arrays)
    file = io.BytesIO()
    np.savez(file, allow_pickle=True, **arrays)
    content["crc32"] = zlib.crc32(file.getvalue())
    (place / folder.ARRAYS).write_bytes(file.getvalue())
    (place / folder.DESCRIPTION).write_text(json.dumps(content))
    return place


NAMES = ("marked", "__import__", "os.system", "numpy.load", "load", "fromfile")


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_policy_that_names_a_function(marker: Path, tmp_path: Path, name: str) -> None:
    def change(content: dict[str, Any], arrays: dict[str, Any]) -> None:
        content["program"]["operations"][0][0] = name

    with pytest.raises(ValueError, match=f"unknown operation '{re.escape(name)}'"):
        rbve.load_policy(shipped(tmp_path / "shipped", change))
    file = tmp_path / "policy.safetensors"
    random_policy("rbve").save(file)
    arrays, info = read_tensors(file)
    info["program"]["operations"][0][0] = name
    write_tensors(file, arrays, info)
    with pytest.raises(ValueError, match=f"unknown operation '{re.escape(name)}'"):
        rbve.load_policy(file)
    assert not marker.exists()


def test_a_shipped_policy_of_pickles(marker: Path, tmp_path: Path) -> None:
    def change(content: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["c0"] = np.array([Marked()], object)

    with pytest.raises(ValueError, match=r"policy\.npz: damaged"):
        rbve.load_policy(shipped(tmp_path / "shipped", change))
    assert not marker.exists()


@pytest.mark.slow
def test_no_pinned_package_has_a_known_fault() -> None:
    pytest.importorskip("pip_audit", reason='pip install "rbve[audit]" brings the audit')
    command = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--format", "json"]
    command += ["--progress-spinner", "off", "--requirement", str(ROOT / "constraints.txt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if not done.stdout:
        pytest.skip(f"no audit: {(done.stderr.strip().splitlines() or ['it ended'])[-1]}")
    packages = json.loads(done.stdout)["dependencies"]
    audited = [each for each in packages if "skip_reason" not in each]
    if not audited:
        pytest.skip(f"no index is reachable: {packages[0]['skip_reason']}")
    faults = [f"{each['name']} {vuln['id']}" for each in audited for vuln in each["vulns"]]
    assert not faults, ", ".join(faults)
    assert len(audited) > len(packages) / 2
