# Two commands do all the set-up: `make train` and `make test`. Both work in a fresh clone.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The lowest Lightning that the bridge is tested with, beside the pinned one.
OLDEST := $(VENV)/lightning-2.2

.DEFAULT_GOAL := help
.PHONY: help train test lint types docs bench lowest clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not here; give another: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "amt_hydra needs Python 3.11; $(PYTHON) is another: make PYTHON=…" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m compileall -q amt_hydra || true # an environment may forbid Python to write bytecode as it runs
	@touch $@

$(OLDEST)/.ready: $(READY) constraints-lowest.txt
	$(BIN)/pip install --quiet --no-deps --upgrade --target $(OLDEST) \
		$$(grep -E '^((pytorch-)?lightning=|setuptools)' constraints-lowest.txt)
	@touch $@

train: $(READY) ## train the bundled melody transcriber, from scratch
	$(BIN)/python -m amt_hydra repo=reference exp_id=first init.overwrite=true

test: $(READY) $(OLDEST)/.ready ## the whole test suite
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

lint: $(READY) ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict
	$(BIN)/mypy
	cd amt_hydra/reference/src && MYPYPATH=. ../../../$(BIN)/mypy --strict --config-file ../../../pyproject.toml *.py

docs: $(READY) ## the generated page of the docs
	@mkdir -p docs
	$(BIN)/python -m amt_hydra conventions --markdown > docs/conventions.md

bench: $(READY) ## speed and memory, as ratios within one run
	$(BIN)/python bench/bench_plan.py
	$(BIN)/python bench/bench_checkpoint.py
	$(BIN)/python bench/bench_inspect.py
	$(BIN)/python bench/bench_sweep.py

lowest: ## the tests with the lowest versions that pyproject.toml admits
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --constraint constraints-lowest.txt --editable '.[dev]'
	.venv-lowest/bin/pytest -n 3 --dist loadfile --no-loadscope-reorder

clean: ## remove the virtual environment; outputs/ stays
	rm -rf $(VENV) .venv-lowest
