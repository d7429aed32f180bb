"""Audits beside the rows of a study."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.studies import write_store

from rbve import audit
from rbve.data import load
from rbve.paper import audits


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audits")
    for seed in (0, 1):
        write_store(folder / "data" / "catch-0.25" / str(seed), 40, seed)
    audits.write_audits(folder)
    return folder


def test_what_is_kept_of_an_audit(out: Path) -> None:
    found = audits.read_audits(out)
    assert list(found) == ["data/catch-0.25/0", "data/catch-0.25/1"]
    own, data = found["data/catch-0.25/1"], load(out / "data" / "catch-0.25" / "1")
    returns = np.asarray(data.episode_return)
    assert own["episodes"] == 40
    assert own["transitions"] == 40 * 9
    assert own["returns"]["mean"] == pytest.approx(returns.mean())
    assert own["returns"]["median"] == pytest.approx(np.median(returns))
    chosen = np.asarray(data.action)
    chosen = chosen[chosen >= 0]
    assert own["actions"] == {
        name: pytest.approx((chosen == k).mean()) for k, name in enumerate(data.actions)
    }
    executed = np.asarray(data.executed)[np.asarray(data.action) >= 0]
    assert own["executed_differs"] == pytest.approx((executed != chosen).mean())
    assert own["verdict"] in ("fine", "look at this", "do not train")
    assert (out / audits.FILE).stat().st_size < 20_000


def test_an_unchanged_recording_keeps_its_audit(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (out / audits.FILE).read_bytes()
    asked = []

    def again(folder: Path) -> audit.Audit:
        asked.append(folder.name)
        return real(folder)

    real = audit.audit_path
    monkeypatch.setattr(audit, "audit_path", again)
    seen: list[str] = []
    audits.write_audits(out, seen.append)
    assert (asked, len(seen)) == ([], 2)
    assert (out / audits.FILE).read_bytes() == before
    content = json.loads(before)
    content["data/catch-0.25/0"] |= {"fingerprint": "other", "verdict": "do not train"}
    (out / audits.FILE).write_text(json.dumps(content))
    audits.write_audits(out)
    assert asked == ["0"]
    assert (out / audits.FILE).read_bytes() == before


def test_recordings_that_are_not_finished_wait(tmp_path: Path) -> None:
    unfinished = tmp_path / "data" / "catch-0" / "0"
    unfinished.mkdir(parents=True)
    (unfinished / "manifest.json").write_text('{"finished": false}')
    assert audits.write_audits(tmp_path) == {}
    assert audits.read_audits(tmp_path) == {}


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    assert audits.read_audits(tmp_path) == {}
    (tmp_path / audits.FILE).write_text('{"data/x/0": 3}')
    with pytest.raises(ValueError, match=r"audits\.json: holds no audits; remove it"):
        audits.read_audits(tmp_path)
