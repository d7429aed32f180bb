"""Share of lines that tests ran, by folder of rbve/.

python -m pytest --cov=rbve --cov-report=json:coverage.json tests
python tools/coverage_by_folder.py coverage.json
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path


def main() -> None:
    files = json.loads(Path(sys.argv[1]).read_text())["files"]
    lines: Counter[str] = Counter()
    covered: Counter[str] = Counter()
    for name, facts in files.items():
        parts = Path(name).parts[Path(name).parts.index("rbve") + 1 :]
        for folder in (parts[0] if len(parts) > 1 else "rbve/*.py", "all"):
            lines[folder] += facts["summary"]["num_statements"]
            covered[folder] += facts["summary"]["covered_lines"]
    for folder in sorted(lines, key=lambda each: (each == "all", each)):
        share = covered[folder] / lines[folder] if lines[folder] else 1.0
        print(f"{folder:<12}{lines[folder]:>8,} lines {share:>7.1%} run")


if __name__ == "__main__":
    main()
