# Two commands for a user: `make demo` and `make test`. Each builds what it needs in .venv, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo setup test test-portable test-lowest test-slow wheel docs bench house lint format clean

demo: $(VENV)/.train
	$(BIN)/shoal train cartpole

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=30 --durations-min=5

# workers, training and the command line once more, on what every operating system has (which is too little for Ray)
test-portable: setup
	SHOAL_PORTABLE=1 PYTHONPATH=tests/portable $(BIN)/python -m pytest -n 2 --dist worksteal \
	    tests/vector/workers tests/training tests/cli tests/runs tests/experiments tests/test_platform.py tests/jit/test_cache.py \
	    --ignore tests/cli/test_rllib.py

# the core with the lowest versions that pyproject.toml allows, in an environment of its own
test-lowest:
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet -c constraints-lowest.txt -e '.[train,tune,video]' pytest hypothesis
	.venv-lowest/bin/python -m pytest tests/jit tests/agents tests/policy/test_load.py tests/vector/lanes tests/vector/test_serial.py \
	    tests/vector/test_batched.py tests/vector/test_attributes.py tests/worlds/classic \
	    --ignore tests/vector/lanes/test_gym_ids.py -k "not simulators_outside_python"  # which are about other packages

test-slow: setup
	$(BIN)/python -m pytest -m slow -s --durations=0

wheel: setup
	$(BIN)/python -m build --no-isolation --outdir dist

# the site, into site/
docs: setup
	$(BIN)/python -m mkdocs build --strict

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
	$(PIP) -e '.[train,dev,atari,box2d,strangers,peers,video,routing,kg,search,tune,ray,sb3,torchrl,pettingzoo,export,docs]'
	touch $@

clean:
	rm -rf $(VENV) .venv-lowest site .pytest_cache .mypy_cache .ruff_cache .hypothesis
