"""Makes visits.csv, the log of the README's example: patients, treatments and what came of them.

The patients are invented. Blood pressure falls faster under the stronger drug, which frail patients
bear badly; the ward's habits, not the patient, mostly decide what is given.
"""

from __future__ import annotations

import csv
import sys

import numpy as np

TREATMENTS = ("none", "mild", "strong")
HABITS = {"A": (0.5, 0.3, 0.2), "B": (0.2, 0.6, 0.2), "C": (0.2, 0.3, 0.5)}  # of each ward
RELIEF = {"none": -2.0, "mild": 9.0, "strong": 20.0}  # mmHg a day
HARM = {"none": 0.0, "mild": 0.1, "strong": 0.6}  # to a frail patient, a day


def main(visits: int = 400) -> None:
    rng = np.random.default_rng(0)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["visit", "day", "age", "blood_pressure", "ward", "treatment", "outcome"])
    for visit in range(visits):
        age, pressure = int(rng.integers(30, 91)), rng.normal(165, 12)
        ward = str(rng.choice(list(HABITS)))
        for day in range(int(rng.integers(2, 9))):
            treatment = str(rng.choice(TREATMENTS, p=HABITS[ward]))
            after = pressure - RELIEF[treatment] + rng.normal(0, 4)
            harm = HARM[treatment] * (age > 70) + 0.2 * max(0.0, 115 - after) / 10
            outcome = 0.1 * (abs(pressure - 125) - abs(after - 125)) - harm
            row = [f"v{visit:03}", day, age, f"{pressure:.0f}", ward, treatment, f"{outcome:.2f}"]
            out.writerow(row)
            pressure = after


if __name__ == "__main__":
    main()
