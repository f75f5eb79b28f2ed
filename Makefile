# Every target makes its own virtual environment first and reuses it afterwards.
PYTHON ?= python3.11
PYTHON := $(shell command -v $(PYTHON) || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1
TESTERS ?= 3
# HOST, PORT and WEB_PORT go before TIMEOUT_KB_HOST, TIMEOUT_KB_PORT and TIMEOUT_KB_WEB_PORT.
ADDRESS = $(if $(HOST),--host $(HOST)) $(if $(PORT),--port $(PORT)) $(if $(WEB_PORT),--web-port $(WEB_PORT))

MINUTES ?= 10
# Tests that hold wherever the knowledge base is kept.
ON_POSTGRES = tests/kb/store/test_store.py tests/kb/store/test_records.py \
  tests/kb/index/test_live.py tests/kb/index/test_catalogue.py tests/kb/search tests/kb/test_service.py \
  tests/kb/chat tests/app/inputs
# These look at the file itself, one of them from another process.
ON_FILE = tests/app/inputs/test_contributions.py
ON_POSTGRES += --deselect $(ON_FILE)::test_secrets_in_comments_are_not_kept \
  --deselect tests/kb/store/test_records.py::test_what_was_kept_before_there_were_quotas_counts \
  --deselect $(ON_FILE)::test_what_one_process_adds_the_next_search_of_another_finds

.PHONY: run test test-postgres lint bench screens evaluate lab hangs mutation fuzz crash crash-replicas soak check-deploy fit clean
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
	$(BIN)/pip install --quiet --editable '.[models,dev,fit,web,slack,capture,postgres,s3]'
	@touch $@ $(VENV)/.run

run: $(VENV)/.run
	$(BIN)/timeout-kb up $(ADDRESS)

test: $(VENV)/.dev lint
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadfile --no-loadscope-reorder $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m tests.bench

# Pictures of eight kinds of answer, on a desk and on a phone, and what their first screens hold.
screens: $(VENV)/.dev
	$(BIN)/python -m tests.browser.first_screen

evaluate: $(VENV)/.dev
	$(BIN)/timeout-kb evaluate $(if $(THREADS),--threads $(THREADS))

# Store, search, service, chat and incidents on a PostgreSQL server, started for the tests.
test-postgres: $(VENV)/.dev
	TEST_STORE=postgres $(BIN)/python -m pytest -n $(TESTERS) --dist loadfile $(ON_POSTGRES) $(ARGS)

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

# Three servers on one PostgreSQL database behind haproxy, killed at any moment.
crash-replicas: $(VENV)/.dev
	$(BIN)/python -m tests.crash.replicas $(or $(ROUNDS),200) $(or $(SEED),0)

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
