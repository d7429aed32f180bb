"""What is wrong with a log is named by file, row and column; an audit reads on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbve.data import Dataset
from rbve.data.formats import read
from rbve.data.logs import LogOptions
from rbve.data.source import Fault

Make = Callable[..., Path]


def good(**more: Any) -> dict[str, list[Any]]:
    """Six decisions in two episodes, nothing wrong with them."""
    return {
        "episode": [1, 1, 1, 4, 4, 4],
        "time": [0, 1, 2, 0, 1, 2],
        "x": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5],
        "word": ["a", "b", "a", "b", "a", "b"],
        "action": [0, 1, 2, 0, 1, 2],
        "reward": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "terminated": [0, 0, 1, 0, 0, 1],
        **more,
    }


def place(path: Path, row: int) -> str:
    """As a person counts: lines of a text file from 1, header included; rows of others from 0."""
    return f"line {row + 2}" if path.suffix == ".csv" else f"row {row}"


def faults_of(path: Path, options: LogOptions) -> tuple[list[Fault], Dataset]:
    found: list[Fault] = []
    source = read(path, options=options, on_fault=found.append)
    return found, Dataset.join(source.parts)


def test_nothing_is_wrong_with_a_good_log(make: Make) -> None:
    found, data = faults_of(make(**good()), LogOptions())
    assert found == []
    assert data.num_transitions == 6


# (kind, change, row, words of the message)
WRONG: list[tuple[str, dict[str, list[Any]], int, list[str]]] = [
    ("nan reward", {"reward": [1.0, 2.0, 3.0, None, 5.0, 6.0]}, 3, ["reward", "finite"]),
    ("nan reward", {"reward": [1.0, 2.0, 3.0, 4.0, float("inf"), 6.0]}, 4, ["inf"]),
    ("nan reward", {"reward": [1.0, 1e200, 3.0, 4.0, 5.0, 6.0]}, 1, ["1e+200"]),
    ("nan observation", {"x": [0.5, None, 2.5, 3.5, 4.5, 5.5]}, 1, ["'x'"]),
    ("nan observation", {"x": [0.5, 1.5, 2.5, 3.5, 4.5, float("inf")]}, 5, ["'x'"]),
    ("nan observation", {"x": [0.5, 1.5, 2.5, 3.5, -1e300, 5.5]}, 4, ["'x'"]),
    ("nan observation", {"word": ["a", "b", "a", None, "a", "b"]}, 3, ["'word'"]),
    ("bad action", {"action": [0, 1, 2, -1, 1, 2]}, 3, ["-1", "whole number"]),
    ("bad action", {"action": [0, 1, 2, 0, 1.5, 2]}, 4, ["1.5", "whole number"]),
    ("bad action", {"action": [0, None, 2, 0, 1, 2]}, 1, ["empty", "not the last row"]),
    ("unsorted time", {"time": [0, 2, 1, 0, 1, 2]}, 2, ["1 after 2", "sort"]),
    ("unsorted time", {"time": [0, 1, 2, 0, 1, 1]}, 5, ["1 after 1"]),
    ("unsorted time", {"time": [0, 1, 2, 0, None, 1]}, 4, ["empty"]),
    ("early end", {"terminated": [0, 1, 0, 0, 0, 1]}, 1, ["'terminated'", "goes on"]),
    ("early end", {"truncated": [0, 0, 0, 1, 0, 0]}, 3, ["'truncated'"]),
    ("bad flag", {"terminated": [0, 0, 1, 0, 0, 2]}, 5, ["2", "0 or 1"]),
    ("empty episode id", {"episode": [1, 1, 1, 4, None, 4]}, 4, ["'episode'"]),
    ("bad propensity", {"propensity": [0.5, 1.0, 0.0, 1.0, 1.0, 1.0]}, 2, ["is 0"]),
    ("bad propensity", {"propensity": [0.5, 1.0, 0.1, 1.01, 1.0, 1.0]}, 3, ["1.01"]),
    ("bad propensity", {"propensity": [0.5, -0.1, 0.1, 1.0, 1.0, 1.0]}, 1, ["-0.1"]),
    ("bad propensity", {"propensity": [0.5, None, 0.1, 1.0, 1.0, 1.0]}, 1, ["empty"]),
    ("bad return", {"episode_return": [6, 6, 6, 15, 15, float("inf")]}, 5, ["infinite"]),
]


@pytest.mark.parametrize(("kind", "change", "row", "words"), WRONG)
def test_wrong_values_are_named(
    make: Make, kind: str, change: dict[str, list[Any]], row: int, words: list[str]
) -> None:
    path = make(**good(**change))
    options = LogOptions(observation=("x", "word"))
    with pytest.raises(ValueError) as error:
        Dataset.join(read(path, options=options).parts)
    text = str(error.value)
    assert text.startswith(f"{path}: {place(path, row)}: ")
    assert all(word in text for word in words), text
    assert "\n" not in text
    found, data = faults_of(path, options)
    assert [fault.kind for fault in found] == [kind]
    assert found[0].text == text
    assert data.num_transitions == 6


def test_an_audit_reads_on_with_what_is_there(make: Make) -> None:
    found, data = faults_of(
        make(
            **good(
                action=[0, 1, 2, -1, 1.5, 2],
                reward=[1.0, None, 3.0, 4.0, 5.0, 6.0],
                x=[0.5, None, 2.5, None, 4.5, 5.5],
                time=[0, 2, 1, 0, 1, 2],
            )
        ),
        LogOptions(observation=("x", "word")),
    )
    assert {fault.kind for fault in found} == {
        "bad action",
        "nan reward",
        "nan observation",
        "unsorted time",
    }
    np.testing.assert_array_equal(data.action, [0, 1, 2, -1, -1, -1, 2, -1])
    np.testing.assert_array_equal(data.reward, [1, np.nan, 3, 0, 4, 5, 6, 0])
    np.testing.assert_array_equal(data.obs[:, 0], [0.5, np.nan, 2.5, 2.5, np.nan, 4.5, 5.5, 5.5])
    assert any("1 more rows like it" in fault.text for fault in found)


def test_a_reward_in_the_final_row_is_named(make: Make) -> None:
    path = make(episode=[1, 1, 1], x=[1, 2, 3], action=[0, 1, None], reward=[0.0, 1.0, 7.5])
    found, data = faults_of(path, LogOptions())
    assert [fault.kind for fault in found] == ["final reward"]
    assert "7.5" in found[0].text
    assert place(path, 2) in found[0].text
    np.testing.assert_array_equal(data.reward, [0, 1, 0])


def test_an_episode_without_a_decision_is_named(make: Make) -> None:
    path = make(episode=[1, 2, 2], x=[1, 2, 3], action=[None, 1, 0], reward=[None, 1, 1])
    found, data = faults_of(path, LogOptions())
    assert [fault.kind for fault in found] == ["no decision"]
    assert place(path, 0) in found[0].text
    np.testing.assert_array_equal(data.action, [1, 0, -1])


def test_ids_may_fall_or_be_words(make: Make) -> None:
    for ids in ([9, 9, 4, 4, 7, 7], ["p9", "p9", "p10", "p10", "a", "a"], [2.5, 2.5, 1, 1, 0, 0]):
        found, data = faults_of(
            make(**good(episode=ids, time=[0, 1] * 3)),
            LogOptions(observation=("x",), terminated=""),
        )
        assert found == []
        np.testing.assert_array_equal(data.lengths, [2, 2, 2])


def test_a_split_episode_that_nothing_orders_is_named(make: Make) -> None:
    """It may as well be an id that was used twice, so an audit does not go on either."""
    path = make(**good(episode=["b", "b", "a", "c", "b", "b"]))
    options = LogOptions(observation=("x",), terminated="", time="")
    found: list[Fault] = []
    with pytest.raises(ValueError, match=f"{place(path, 4)}: episode 'b' ") as error:
        Dataset.join(read(path, options=options, on_fault=found.append).parts)
    assert f"after {place(path, 0)}" in str(error.value)
    assert "pass --time NAME" in str(error.value)
    assert [fault.kind for fault in found] == ["split episode"]


def test_an_id_used_twice_is_found_by_its_times_or_ends(make: Make) -> None:
    path = make(**good(episode=["b", "b", "a", "c", "b", "b"], time=[0, 1, 0, 0, 0, 1]))
    found, _ = faults_of(path, LogOptions(observation=("x",), terminated=""))
    assert [fault.kind for fault in found] == ["unsorted time"]
    assert f"{place(path, 4)}: column 'time' is 0 after 0" in found[0].text
    path = make(**good(episode=[1, 1, 4, 4, 1, 1], terminated=[0, 1, 0, 1, 0, 1]))
    found, _ = faults_of(path, LogOptions(observation=("x",), time=""))
    assert [fault.kind for fault in found] == ["early end"]
    assert f"{place(path, 1)}: " in found[0].text


# Actions outside the set


def test_an_action_outside_the_declared_set(make: Make) -> None:
    path = make(**good(action=["up", "up", "down", "up", "left", "up"]))
    options = LogOptions(actions=("up", "down"), observation=("x",))
    with pytest.raises(
        ValueError, match=f"{place(path, 4)}: column 'action' holds 'left'.*up, down"
    ):
        Dataset.join(read(path, options=options).parts)
    found, data = faults_of(path, options)
    assert [fault.kind for fault in found] == ["unknown action"]
    np.testing.assert_array_equal(data.action, [0, 0, 1, -1, 0, -1, 0, -1])


def test_an_id_outside_the_declared_set(make: Make) -> None:
    path = make(**good(action=[0, 2, 5, 0, 2, 0]))
    found, data = faults_of(path, LogOptions(actions=("0", "2"), observation=("x",)))
    assert [fault.kind for fault in found] == ["unknown action"]
    assert f"{place(path, 2)}: column 'action' holds 5" in found[0].text
    np.testing.assert_array_equal(data.action, [0, 1, -1, -1, 0, 1, 0, -1])


def test_too_many_inferred_actions(make: Make) -> None:
    path = make(**good(action=[0, 1, 4096, 0, 1, 2]))
    with pytest.raises(ValueError, match=r"holds action 4096; at most 4096 .*--actions"):
        read(path, options=LogOptions(observation=("x",)))
    found, data = faults_of(path, LogOptions(observation=("x",)))
    assert [fault.kind for fault in found] == ["too many actions", "bad action"]
    assert data.num_actions == 3


# Masks


def masked(**more: Any) -> dict[str, list[Any]]:
    return good(ok_0=[1] * 6, ok_1=[1] * 6, ok_2=[1] * 6, **more)


def test_an_illegal_logged_action(make: Make) -> None:
    log = masked()
    log["ok_1"] = [1, 1, 1, 1, 0, 1]
    path = make(**log)
    found, _ = faults_of(path, LogOptions(observation=("x",), legal="ok_*"))
    assert [fault.kind for fault in found] == ["illegal action"]
    assert f"{place(path, 4)}: action '1' was taken" in found[0].text


def test_no_legal_action(make: Make) -> None:
    log = masked()
    for name in ("ok_0", "ok_1", "ok_2"):
        log[name] = [1, 1, 1, 0, 1, 1]
    path = make(**log)
    found, _ = faults_of(path, LogOptions(observation=("x",), legal="ok_*"))
    assert [fault.kind for fault in found] == ["illegal action", "no legal action"]
    assert all(place(path, 3) in fault.text for fault in found)


def test_masks_of_another_width(make: Make) -> None:
    log = masked()
    log["action"] = ["a", "b", "c", "d", "a", "b"]
    with pytest.raises(ValueError, match=r"3 columns of legal actions .*and 4 actions"):
        Dataset.join(read(make(**log), options=LogOptions(observation=("x",), legal="ok_*")).parts)


def test_gaps_and_other_values_in_masks(make: Make) -> None:
    log = masked()
    log["ok_0"] = [1, None, 1, 1, 3, 1]
    path = make(**log)
    found, data = faults_of(path, LogOptions(observation=("x",), legal="ok_*"))
    assert [fault.kind for fault in found] == ["bad mask", "empty mask"]
    assert place(path, 4) in found[0].text
    assert place(path, 1) in found[1].text
    assert data.legal is not None
    assert data.legal.all()


# Columns that are not there


def test_a_missing_column_is_named_with_the_nearest(make: Make) -> None:
    log = good()
    log["rewards"] = log.pop("reward")
    with pytest.raises(ValueError, match=r"no column 'reward'. Did you mean 'rewards'\? Columns: "):
        read(make(**log))
    with pytest.raises(
        ValueError, match=r"no column 'wrod'. Did you mean 'word'\? .*--observation"
    ):
        read(make(**good()), options=LogOptions(observation=("x", "wrod")))
    with pytest.raises(ValueError, match=r"no column 'obs_\*'.*--observation"):
        read(make(**good()), options=LogOptions(observation=("obs_*",)))
    with pytest.raises(ValueError, match=r"no column 'p'.*--propensity"):
        read(make(**good()), options=LogOptions(propensity="p"))
    found, data = faults_of(make(**good()), LogOptions(observation=("x", "y"), propensity="p"))
    assert [fault.kind for fault in found] == ["missing column"] * 2
    assert data.features is not None
    assert data.features.names == ["x"]


def test_nothing_says_where_episodes_begin(make: Make) -> None:
    log = good()
    del log["episode"], log["terminated"]
    with pytest.raises(ValueError, match=r"--episode NAME.*--terminated NAME.*--next-observation"):
        read(make(**log))


def test_an_observation_may_not_hold_the_answer(make: Make) -> None:
    for column in ("action", "reward", "terminated"):
        with pytest.raises(ValueError, match=f"'{column}'.*leave it out of --observation"):
            read(make(**good()), options=LogOptions(observation=("x", column)))


def test_next_observations_fit_the_observation(make: Make) -> None:
    with pytest.raises(ValueError, match="1 columns of the next observation and 2"):
        read(
            make(**good(y=[1] * 6)),
            options=LogOptions(observation=("x", "word"), next_observation=("y",)),
        )


def test_a_column_of_too_many_words(make: Make) -> None:
    count = 1001
    path = make(
        episode=list(range(count)),
        name=[f"n{index}" for index in range(count)],
        action=[0] * count,
        reward=[0.0] * count,
    )
    with pytest.raises(ValueError, match=r"'name' holds more than 1000 different.*--observation"):
        read(path)
    found, data = faults_of(path, LogOptions())
    assert found[0].kind == "too many categories"
    assert data.features is not None
    assert data.features.size == 1000


def test_an_empty_action_column(make: Make) -> None:
    with pytest.raises(ValueError, match="'action' holds no action at all"):
        read(make(**good(action=[None] * 6)))
