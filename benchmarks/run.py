"""Benchmarks: python benchmarks/run.py [--quick] [--only NAME] [--out results.json]"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table
from timing import Figure

NAMES = ("updates", "sweep", "bound", "bound_networks", "evaluation", "pixels", "memory")


def main() -> None:
    parser = argparse.ArgumentParser(description="Ratios measured side by side on this machine.")
    parser.add_argument("--quick", action="store_true", help="shorter runs, rougher figures")
    parser.add_argument("--only", choices=NAMES, action="append", help="repeatable")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    figures: list[Figure] = []
    for name in arguments.only or NAMES:
        found = importlib.import_module(name).measure(arguments.quick)
        show(name, found)
        figures += found
    if arguments.out:
        arguments.out.write_text(json.dumps([figure._asdict() for figure in figures], indent=1))


def show(name: str, figures: list[Figure]) -> None:
    table = Table(title=name, title_justify="left", show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    table.add_column(justify="left")
    for figure in figures:
        value = f"{figure.value:,.0f}" if abs(figure.value) >= 100 else f"{figure.value:.2f}"
        table.add_row(figure.name, f"{value} {figure.unit}", figure.note)
    Console().print(table)


if __name__ == "__main__":
    main()
