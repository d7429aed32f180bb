"""The mean return of one policy has an interval over its episodes."""

import numpy as np
import pytest

import rbve
from rbve.report.statistics import student_quantile


def test_the_interval_is_students_over_episodes(tmp_path) -> None:
    data = rbve.record("catch", tmp_path / "data", policy="uniform", episodes=20)
    policy = rbve.train(data, "bc", steps=2)
    found = rbve.evaluate(policy, "catch", episodes=40)
    # A return of catch is 1 or −1, so the mean tells how many were caught.
    returns = np.where(np.arange(40) < round(20 * (1 + found["return"])), 1.0, -1.0)
    assert returns.mean() == pytest.approx(found["return"])
    reach = student_quantile(39) * returns.std(ddof=1) / np.sqrt(40)
    low, high = found["return_interval"]
    assert (low, high) == pytest.approx((returns.mean() - reach, returns.mean() + reach))
    assert found["episodes"] == 40
    assert rbve.evaluate(policy, "catch", episodes=1)["return_interval"] is None
