# Two commands for a user: `make demo` and `make test`. Each builds what it needs in .venv, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo setup test test-portable test-slow wheel bench house lint format clean

demo: $(VENV)/.train
	$(BIN)/shoal train cartpole

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

# workers, training and the command line once more, on what every operating system has
test-portable: setup
	SHOAL_PORTABLE=1 PYTHONPATH=tests/portable $(BIN)/python -m pytest -n 2 --dist worksteal \
	    tests/vector/workers tests/training tests/cli tests/runs tests/jit/test_cache.py

test-slow: setup
	$(BIN)/python -m pytest -m slow -s

wheel: setup
	$(BIN)/python -m build --no-isolation --outdir dist

bench: setup
	$(BIN)/shoal bench

house: setup
	$(BIN)/python tools/house.py

lint: setup
	$(BIN)/ruff check src tests tools
	$(BIN)/ruff format --check src tests tools
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix src tests tools
	$(BIN)/ruff format src tests tools

setup: $(VENV)/.setup

# What training needs, for the demo. torch comes first and by its exact pin: a range would fetch builds for accelerators.
$(VENV)/.train: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) -e '.[train]'
	touch $@

# What the tests and benchmarks need on top.
$(VENV)/.setup: $(VENV)/.train
	$(PIP) -e '.[train,dev,atari,box2d,peers,video,routing,kg,search,tune,ray,sb3,torchrl,pettingzoo,export]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
