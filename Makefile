# Every target sets up .venv by itself: with uv where it is on the PATH, with pip otherwise.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ORACLES := .venv-oracles
UV := $(shell command -v uv 2>/dev/null)

.PHONY: demo test test-slow test-oracles lint bench chaos soak docs experiments clean

demo: $(VENV)/.lab
	$(BIN)/hushrank demo

test: $(VENV)/.test lint
	$(BIN)/python -m pytest -n 2 --durations=15 -m "not slow"

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --durations=15 -m slow
	HUSHRANK_FRESH_SEEDS=1 $(BIN)/python -m pytest -n 2 --durations=15 -m "randomised and not slow"

# Other people's implementations of the aggregation rules; Why apart: they bring PyTorch and narrow pins.
test-oracles: $(ORACLES)/.made
	$(ORACLES)/bin/python -m pytest -rs tests/aggregation/test_oracles.py

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.test
	$(BIN)/hushrank bench

chaos: $(VENV)/.test
	$(BIN)/python -m benchmarks.chaos --rounds 300 --kills 200 --restores 10 --clones 6 --clock-jumps 20 --clients 8
	$(BIN)/python -m benchmarks.chaos --rounds 300 --kills 200 --restores 10 --clones 6 --clock-jumps 20 --clients 8 --method foltr-es

soak: $(VENV)/.test
	$(BIN)/python -m benchmarks.live_load --seconds 1800 --rounds 10

experiments: $(VENV)/.lab
	$(BIN)/python -m benchmarks.quality

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) $(ORACLES) site dist build .pytest_cache .mypy_cache .ruff_cache

# One stamp per set of packages; each is made anew when pyproject.toml changes.
$(VENV)/.made:
	$(if $(UV),$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV),$(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --upgrade "pip>=25.1")
	touch $@

install = $(if $(UV),VIRTUAL_ENV=$(VENV) $(UV) pip install --quiet,$(BIN)/python -m pip install --quiet --disable-pip-version-check)

$(VENV)/.lab: pyproject.toml | $(VENV)/.made
	$(install) --editable ".[lab,server]"
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/.made
	$(install) --editable ".[lab,server]" --group test --group lint
	touch $@ $(VENV)/.lab

$(VENV)/.docs: pyproject.toml | $(VENV)/.made
	$(install) --editable ".[lab,server]" --group docs
	touch $@ $(VENV)/.lab

$(ORACLES)/.made: pyproject.toml
	$(PYTHON) -m venv $(ORACLES)
	$(ORACLES)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(ORACLES)/bin/python -m pip install --quiet --disable-pip-version-check --editable . --group oracles
	touch $@
