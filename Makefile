# Two commands for a user: `make demo` and `make test`. Each builds what it needs in .venv, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo setup test test-slow bench lint format clean

demo: $(VENV)/.train
	$(BIN)/shoal train cartpole

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: setup
	$(BIN)/python -m pytest -m slow -s

bench: setup
	$(BIN)/shoal bench

lint: setup
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix src tests
	$(BIN)/ruff format src tests

setup: $(VENV)/.setup

# What training needs, for the demo. torch comes first and by its exact pin: a range would fetch builds for accelerators.
$(VENV)/.train: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) -e '.[train]'
	touch $@

# What the tests and benchmarks need on top.
$(VENV)/.setup: $(VENV)/.train
	$(PIP) -e '.[train,dev,box2d,peers,video,routing,kg,search,ray,sb3,torchrl,pettingzoo]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
