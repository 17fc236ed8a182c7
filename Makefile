# The whole project in a few words: `make demo` and `make test` need only Python, pip, make and git.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready
EXTRAS := anthropic,openai,simulator,serve,gateway,mcp,prices,recall,objects,postgres,fleet,telemetry,terminal

ON_A_DATABASE := e2e/test_own_loop e2e/test_agent_clearing e2e/test_same_prefix e2e/test_resuming_compacted e2e/test_spilling session/test_session session/test_following

WORKERS := $(shell expr 1 + $$(getconf _NPROCESSORS_ONLN)) # each collects everything, so more cost more than they gain
PYTEST  := $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 16 --dist worksteal

unexport PYTHONDONTWRITEBYTECODE # without bytecode the tests' processes compile everything anew

.PHONY: help demo test test-all test-random test-postgres check audit format bench reliability soak fuzz golden clean

help:
	@echo "make demo    run the main job, offline"
	@echo "make test    the tests for every day; test-all: the slow ones, too, and sessions on a database"
	@echo "make test-random  in random order; test-postgres: every test of sessions, on a database"
	@echo "make check   format, lint, types, import contracts, known vulnerabilities where reachable"
	@echo "make bench   every claim measured again; writes benchmarks/results.json and docs/benchmarks.md"
	@echo "make reliability  faults, attacks, slow inputs and 3,000 turns; writes docs/reliability.md"
	@echo "make fuzz    spoilt bytes at every door that reads something, guided where atheris is installed"
	@echo "make soak    10,000 turns with a failing provider and random kills, an hour at most"
	@echo "make format  rewrite the sources in the house format"
	@echo "make golden  rewrite the golden files; review the diff"
	@echo "make clean   remove what make created"

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt 'pip>=25.1'
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev --group adapters --editable '.[$(EXTRAS)]'
	@touch $(READY)

demo: $(READY)
	@$(BIN)/longhold demo

test: $(READY)
	$(PYTEST) -m "not slow"

test-all: $(READY)
	LONGHOLD_TEST_EXAMPLES=120 $(PYTEST)
	LONGHOLD_TEST_STORE=postgres $(PYTEST) $(ON_A_DATABASE:%=tests/%.py)

test-random: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target build/randomly 'pytest-randomly>=4'
	PYTHONPATH=$(CURDIR)/build/randomly $(PYTEST)

test-postgres: $(READY)
	LONGHOLD_TEST_STORE=postgres $(PYTEST) tests/session tests/e2e

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy tests/session/typed_program.py
	$(BIN)/lint-imports
	@.ci/audit $(BIN)/python

audit: $(READY)
	@.ci/audit $(BIN)/python

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(BIN)/python benchmarks/scorecard.py

reliability: $(READY)
	$(BIN)/python benchmarks/reliability.py --page docs/reliability.md

fuzz: $(READY)
	$(BIN)/python benchmarks/fuzz.py --runs 200000

soak: $(READY)
	$(BIN)/python benchmarks/soak.py --turns 10000 --kills 60 --minutes 60

golden: $(READY)
	LONGHOLD_REWRITE_GOLDEN=1 $(BIN)/python -m pytest tests/golden tests/test_docs.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis
