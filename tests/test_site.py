"""The site's tools: pages for all there is, links that are checked, data read out of archives."""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from pathlib import Path

import docs_data
import docs_links
import docs_reference
import docs_results
import docs_site
import docs_unrun
import pytest

from rbve import algorithms, envs
from rbve.data import formats
from rbve.off_policy import estimators

ROOT = Path(__file__).parent.parent


def test_every_algorithm_has_notes_and_no_note_is_left_over() -> None:
    noted = {file.stem for file in (ROOT / "docs" / "notes" / "algorithms").glob("*.md")}
    assert noted == set(algorithms.names())


def test_an_algorithm_has_its_settings_metrics_and_measurements() -> None:
    page = docs_reference.algorithm_page("rbve")
    assert "| `lam` | `0.005` | λ, strength (paper: .005; grid .005 .01 .05 .1 1) |" in page
    assert (
        "| `filter` | `exponential` | form of w(s) (exponential, none, binary, advantage) |" in page
    )
    assert all(f"| `{name}` |" in page for name in ("rank_loss", "weight_ess", "td_loss"))
    assert "cartpole | 95 [83, 107] |" in page
    assert "cartpole | 87 [" not in page  # the best setting of all is no score


def test_settings_of_a_subclass_and_the_class_before() -> None:
    own = {name: words for name, _, words in docs_reference.settings(algorithms.load("rdqn"))}
    assert own["`double`"] == "choose a* with the online network"
    assert own["`nu`"].startswith("ν, margin of the hinge")


@pytest.mark.parametrize(
    ("names", "page"),
    [
        (estimators.names(), docs_reference.estimator_page),
        (formats.names(), docs_reference.format_page),
        ([*envs.names(), *envs.ADAPTERS], docs_reference.environment_page),
    ],
    ids=["estimators", "formats", "environments"],
)
def test_there_is_a_page_for_each(names: list[str], page: object) -> None:
    for name in names:
        text = page(name)  # type: ignore[operator]
        assert text.startswith("# ")
        assert len(text.splitlines()) > 5


def test_findings_of_the_audit_come_with_verdict_and_remedy() -> None:
    found = {name: rest for name, *rest in docs_reference.findings()}
    verdict, why, remedy = found["nothing to rank"]
    assert (verdict, why[:8]) == ("do not train", "no state")
    assert remedy.startswith("check the reward column")
    # A remedy that stands in a name, and one that depends.
    assert found["columns out of scale"][2].startswith("standardise them")
    assert found["actions without support"][0] == "look at this"
    assert all(len(each) == 3 and all(each) for each in found.values())


def test_numbers_are_those_of_the_results() -> None:
    (row,) = [
        each
        for each in docs_results.rows("bsuite-scores.csv")
        if (each["panel"], each["x"]) == ("cartpole", "BC") and "other" in each["series"]
    ]
    assert docs_results.interval(row) == "16 [9, 23]"
    assert docs_results.number("949178947072.0") == "9.5e+11"
    assert docs_results.number("-3.5560") == "−3.6"
    assert docs_results.number("nan") == "–"


def test_links_of_files_outside_lead_there_from_the_site() -> None:
    text = docs_site.shown("results/README.md")
    assert "](../studies.md#how-a-claim-is-judged)" in text
    assert docs_site.shown("README.md", docs_site.COMPARED).startswith("\nWhat each documents")


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("other.html", ""),
        ("other.html#here", ""),
        ("sub/", ""),
        ("https://example.org/x", ""),
        ("missing.html", "no such file"),
        ("other.html#nowhere", "no such place in the page"),
        ("#nowhere", "no such place in the page"),
        ("../outside.html", "outside the site"),
    ],
)
def test_links_are_checked(link: str, reason: str, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "sub").mkdir(parents=True)
    (tmp_path / "outside.html").write_text("<p>")
    (site / "sub" / "index.html").write_text("<p>")
    (site / "other.html").write_text('<p id="here">')
    (site / "index.html").write_text(f'<p>\n<a href="{link}">x</a>')
    wrong = docs_links.broken(site)
    assert wrong == ([f"index.html:2: {link}: {reason}"] if reason else [])


def package(path: Path, files: dict[str, bytes]) -> None:
    """A Debian package: an ar archive with a tar archive in it, after a member of odd length."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:xz") as archive:
        for name, content in files.items():
            facts = tarfile.TarInfo(name)
            facts.size = len(content)
            archive.addfile(facts, io.BytesIO(content))
    members = {"debian-binary": b"2.0\n?", "data.tar.xz": held.getvalue()}
    ar = b"!<arch>\n"
    for name, content in members.items():
        ar += f"{name:16}{0:<12}{0:<6}{0:<6}{'100644':8}{len(content):<10}`\n".encode()
        ar += content + b"\n" * (len(content) % 2)
    path.write_bytes(ar)


def test_a_file_is_read_out_of_a_debian_package(tmp_path: Path) -> None:
    package(tmp_path / "x.deb", {"./usr/a": b"content"})
    with tarfile.open(fileobj=io.BytesIO(docs_data.member(tmp_path / "x.deb", "data.tar"))) as tar:
        assert docs_data.content(tar, "./usr/a") == b"content"
    with pytest.raises(ValueError, match=r"no control\.tar in it"):
        docs_data.member(tmp_path / "x.deb", "control.tar")


def xdr(*values: float) -> bytes:
    """R's serialisation (version 2, big-endian) of a numeric vector."""
    head = b"X\n" + struct.pack(">iii", 2, 0x40000, 0x20300)
    return head + struct.pack(">ii", 14, len(values)) + struct.pack(f">{len(values)}d", *values)


def test_an_object_is_read_out_of_a_package_of_r(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the index, itself such an object, says that it lies."""
    pytest.importorskip("rdata", reason='rdata: pip install "rbve[docs]"')
    block = zlib.compress(xdr(1.5, 2.5))
    blocks = b"before" + struct.pack(">I", len(xdr(1.5, 2.5))) + block
    place = {"variables": {"star": (6, 4 + len(block))}}
    monkeypatch.setattr(docs_data, "parsed", lambda data: parse(data, place))
    found = docs_data.r_object(b"index", blocks, "star")
    assert list(found) == [1.5, 2.5]
    with pytest.raises(ValueError, match="were announced"):
        docs_data.r_object(b"index", blocks.replace(struct.pack(">I", 38), b"\0\0\0\1", 1), "star")


PARSED = docs_data.parsed


def parse(data: bytes, index: object) -> object:
    return index if data == b"index" else PARSED(data)


def test_what_cannot_be_fetched_is_told_and_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def unreachable(out: Path) -> None:
        tried.append(out)
        (out / "half").touch()
        raise ValueError("no network")

    monkeypatch.setattr(docs_data, "FETCHED", tmp_path)
    monkeypatch.setitem(docs_data.SETS, "clicks", unreachable)
    assert docs_data.fetch("clicks") == docs_data.fetch("clicks") == "no network"
    assert (tmp_path / "clicks.reason").read_text() == "no network"
    assert not list(tmp_path.glob("**/half"))
    monkeypatch.setitem(docs_data.SETS, "clicks", lambda out: (out / "log.csv").touch())
    assert docs_data.fetch("clicks") == ""
    assert {file.name for file in tmp_path.iterdir()} == {"log.csv", "clicks.done"}
    assert len(tried) == 2


def test_a_page_without_its_data_shows_its_cells_unrun(tmp_path: Path) -> None:
    (tmp_path / "clicks.reason").write_text("no network")
    page = (ROOT / "docs" / "practice" / "clicks.md").read_text()
    assert docs_unrun.unrun(page, tmp_path / "elsewhere") == page
    text = docs_unrun.unrun(page, tmp_path)
    assert text.startswith("\n# Clicks")
    assert "Not run: no network" in text
    assert not any(word in text for word in ("code-cell", "%%sh", "load_ext", "kernelspec"))
    assert "```bash\nrbve inspect data/clicks\n```" in text
    assert text.count("```") % 2 == 0
