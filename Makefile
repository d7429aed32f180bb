PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test lint bench results clean

demo: $(READY)
	$(BIN)/rbve demo --out demo

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

results: $(READY)
	$(BIN)/rbve report results --out results/index.html
	$(BIN)/python tools/readme_results.py

bench: $(READY)
	$(BIN)/python benchmarks/run.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) build *.egg-info demo
