# Targets set up what they need: a virtual environment in .venv with all four distributions.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PROJECTS := pyproject.toml $(wildcard plugins/*/pyproject.toml)
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types contracts faults bench detection docs pictures clean

help:  ## Say what there is
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST)

$(STAMP): $(PROJECTS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev $(foreach project,.[report] $(wildcard plugins/*/),--editable '$(patsubst %/,%,$(project))')
	@touch $@

setup: $(STAMP)  ## Make the virtual environment

demo: $(STAMP)  ## Train a healthy and a sick network, record both, and judge them
	$(BIN)/smdbg demo

test: $(STAMP)  ## Run the tests
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

contracts: $(STAMP)
	$(BIN)/lint-imports

check: lint types contracts test  ## Lint, types, import contracts and tests

faults: $(STAMP)  ## Damage every file of a run in every way, and print the table of what came of it; some minutes
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.faults
	SMDBG_EXAMPLES=2000 $(BIN)/python -m pytest --quiet tests/faults
	SMDBG_SCHEDULES=1000 SMDBG_KILLS=100 $(BIN)/python -m pytest tests/core/engine/test_follow.py tests/actions/test_kill_followed.py

bench: $(STAMP)  ## Measure speed and memory on generated trials, as ratios to a floor
	$(BIN)/python -m tests.benchmarks

detection: $(STAMP)  ## Measure how well the rules find faults, on trained networks; some minutes
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group detection
	$(BIN)/python -m tests.detection --output build/detection

pictures: $(STAMP)  ## Make the pictures of the README; needs Debian's chromium
	$(BIN)/python -m tests.pictures docs/pictures

docs: $(STAMP)  ## Build the documentation as a site, and check every link within it
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	$(BIN)/python docs/reference_pages.py --check
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs build/site
	@echo build/site/index.html

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
