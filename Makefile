PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
READY_DOCS := $(VENV)/.ready-docs

# Two workers; tests that were skipped are listed with the reason.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal -rs

.PHONY: demo test test-slow faults cluster-faults coverage lint docs bench results clean

demo: $(READY)
	$(BIN)/rbve demo --out demo

test: lint
	$(PYTEST) -m "not slow" tests

# Stress, emulators, every figure: what takes longer than a change is worth waiting for. Compiled
# by XLA's usual emitters with little optimisation, where tests/conftest.py chooses the quickest.
test-slow: $(READY)
	XLA_FLAGS=--xla_backend_optimization_level=1 $(PYTEST) -m slow tests

# Kills, signals, full disks, damaged files, low limits: is anything lost, are results the same?
faults: $(READY)
	$(BIN)/python tools/faults --kills 300

# Which lines of each folder the fast tier runs; processes that tests start are not counted.
coverage: $(READY)
	$(PYTEST) -m "not slow" --cov=rbve --cov-report=json:.coverage.json tests
	$(BIN)/python tools/coverage_by_folder.py .coverage.json

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in docs/_build/html: every cell is run, warnings are errors, links inside are checked.
docs: $(READY_DOCS)
	$(BIN)/python tools/docs_data.py
	$(BIN)/python tools/docs_site.py
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python tools/docs_links.py docs/_build/html

results: $(READY)
	$(BIN)/rbve report results --out results/index.html
	$(BIN)/python tools/readme_results.py

bench: $(READY)
	$(BIN)/python benchmarks/run.py

# Workers, nodes and drivers of a cluster on this machine killed at random; prints counts.
cluster-faults: $(READY)
	$(BIN)/python tools/cluster_faults.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

$(READY_DOCS): $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $(READY_DOCS)

clean:
	rm -rf $(VENV) build *.egg-info demo docs/_build docs/generated .coverage .coverage.json
