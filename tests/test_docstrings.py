"""Public functions document every parameter and show an example that runs."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rbve
from rbve import runtime
from rbve.data import Dataset
from rbve.policy import Policy

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "python.md"


# Between parts of the library; the reference leaves them out too.
PLUMBING = ("act_function", "input", "shown")


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions, and methods of classes, that the reference lists."""
    for name in rbve.__all__:
        each = getattr(rbve, name)
        if not isinstance(each, type):
            yield name, each
    yield "runtime.load", runtime.load
    for kind in (Policy, Dataset):
        for name, member in vars(kind).items():
            function = member.__func__ if isinstance(member, staticmethod) else member
            if inspect.isfunction(function) and not name.startswith("_") and name not in PLUMBING:
                yield f"{kind.__name__}.{name}", function


PUBLIC = dict(public())


@pytest.fixture(scope="module")
def scope(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What examples may use: the log of the first page, a policy, and files of both."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("examples").symlink_to(ROOT / "examples")
        columns = {"episode": "visit", "time": "day", "action": "treatment", "reward": "outcome"}
        log = rbve.convert("examples/visits.csv", "data/visits", **columns, ends="terminated")
        policy = rbve.train(
            "data/visits", "bve", steps=20, hidden=(8,), holdout=0, out="runs/visits"
        )
        policy.save("policy.safetensors")
        rbve.export(policy, "shipped")
        yield {"rbve": rbve, "np": np, "log": log, "policy": policy}


@pytest.mark.parametrize(("name", "function"), list(PUBLIC.items()), ids=list(PUBLIC))
@pytest.mark.filterwarnings("ignore::UserWarning")  # so short a training draws some
def test_the_example_runs(
    name: str, function: Callable[..., Any], scope: dict[str, Any], tmp_path: Path
) -> None:
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(function) or "")
    assert examples, f"{name} shows no example"
    if name == "export":
        (Path("shipped")).rename(tmp_path / "before")
    told: list[str] = []
    test = doctest.DocTest(examples, dict(scope), name, None, None, None)
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=told.append)
    assert not told, "".join(told)


@pytest.mark.parametrize(("name", "function"), list(PUBLIC.items()), ids=list(PUBLIC))
def test_every_parameter_is_documented(name: str, function: Callable[..., Any]) -> None:
    parameters = [each for each in inspect.signature(function).parameters if each != "self"]
    doc = inspect.getdoc(function) or ""
    assert doc, f"{name} has no docstring"
    words = [each for each in parameters if not re.search(rf"`?\*{{0,2}}{each}`?\b", doc)]
    assert not words, f"{name} says nothing of {', '.join(words)}"


def test_the_reference_lists_every_public_name() -> None:
    listed = set(re.findall(r"auto(?:function|class):: (\w+)", PAGE.read_text()))
    assert listed >= set(rbve.__all__)
