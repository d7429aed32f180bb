"""Whether cloning suffices is told from returns on the same datasets."""

from support.reports import add_run, finals

from rbve import rows
from rbve.report.summary import group
from rbve.report.words import advice


def told(folder, **returns):
    """What is said of these returns, one a dataset; random play has −0.6, and 1 is best."""
    for algorithm, values in returns.items():
        for dataset, value in enumerate(values):
            add_run(folder, algorithm, dataset).append(finals({"return": value}))
    (problem,) = group(rows.find([folder]))
    return advice(problem)


def test_a_clear_gain_is_worth_a_choice(tmp_path):
    found = told(tmp_path, bve=(0.2, 0.2, 0.2), rbve=(0.8, 0.9, 1.0), bc=(0.1, 0.3, 0.3))
    # Differences .7, .6, .7: mean .667, standard error .0333, t of 2 degrees of freedom 4.303.
    gain = "0.67 [0.52, 0.81] more than cloning (BC), over 3 datasets"
    assert found == f"Choose R-BVE here: it returns {gain}."


def test_no_gain_means_that_cloning_suffices(tmp_path):
    found = told(tmp_path, rbve=(1.0, 0.98, 1.0), bc=(1.0, 1.0, 1.0), filtered_bc=(1.0, 1.0, 1.0))
    assert found.startswith("Cloning (BC) suffices here: R-BVE returns −0.01 [−0.04, 0.02] more")


def test_a_gain_too_small_to_matter(tmp_path):
    """Told apart by its interval, but under a twentieth of the way from random to the best."""
    found = told(tmp_path, rbve=(0.93, 0.94, 0.95), bc=(0.9, 0.91, 0.92))
    assert found.startswith("Cloning (BC) suffices here: R-BVE returns 0.03 [0.03, 0.03] more")


def test_what_spread_hides_is_undecided(tmp_path):
    found = told(tmp_path, rbve=(0.0, 0.9, 1.0), bc=(0.1, 0.1, 0.1))
    assert found.startswith("Undecided: R-BVE returns 0.53 [")
    assert found.endswith("over 3 datasets; more would tell.")


def test_datasets_are_paired(tmp_path):
    """Datasets differ more than methods do, which must not hide that one is better on each."""
    found = told(tmp_path, rbve=(0.2, 0.6, 1.0), bc=(-0.1, 0.3, 0.69))
    assert found.startswith("Choose R-BVE here: it returns 0.30 [0.29, 0.32] more")


def test_the_better_cloner_is_compared(tmp_path):
    """R-BVE is far above BC, and below BC of the better episodes."""
    found = told(tmp_path, rbve=(0.7, 0.8, 0.75), bc=(0.1, 0.1, 0.1), filtered_bc=(0.8, 0.9, 0.85))
    gain = "R-BVE returns −0.10 [−0.10, −0.10] more, over 3 datasets"
    assert found == f"Cloning (filtered BC) suffices here: {gain}."
    found = told(tmp_path / "bc", rbve=(0.7, 0.8), bc=(0.2, 0.3), filtered_bc=(0.1, 0.1))
    assert found.startswith(
        "Choose R-BVE here: it returns 0.50 [0.50, 0.50] more than cloning (BC)"
    )


def test_without_cloning_or_a_second_dataset_nothing_is_said(tmp_path):
    assert told(tmp_path / "none", rbve=(0.1, 0.2), dqn=(0.1, 0.2)) is None
    assert told(tmp_path / "one", rbve=(0.1,), bc=(0.2,)) is None
    assert told(tmp_path / "alone", bc=(0.2, 0.3)) is None
