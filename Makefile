# The whole project in a few words: `make demo` and `make test` need only Python, pip, make and git.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/base
READY  := $(VENV)/ready
PIP    := $(BIN)/pip --disable-pip-version-check

ON_A_DATABASE := e2e/test_own_loop e2e/test_agent_clearing e2e/test_same_prefix e2e/test_resuming_compacted e2e/test_spilling session/test_session session/test_following

WORKERS := $(shell expr 1 + $$(getconf _NPROCESSORS_ONLN)) # each collects everything, so more cost more than they gain
SECONDS := 600 # how long `make fuzz` traces commands
PYTEST  := $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 16 --dist worksteal

# Other packages are checked on this platform only; on Windows only the commands that read sessions run.
MYPY_ON := $(BIN)/mypy --config-file= --follow-imports skip --platform
ON_WINDOWS := -m longhold.__main__ $(addprefix -p longhold.,core session insight cli)

unexport PYTHONDONTWRITEBYTECODE # without bytecode the tests' processes compile everything anew

.PHONY: help demo test test-all test-random test-postgres oldest coverage check audit format bench reliability soak fuzz \
	golden docs release clean

help:
	@echo "make demo    run the main job, offline"
	@echo "make test    the tests for every day; test-all: the slow ones, too, and sessions on a database"
	@echo "make test-random  in random order; test-postgres: every test of sessions, on a database"
	@echo "make oldest  tests of sessions and adapters with the oldest SDKs that the extras allow"
	@echo "make check   format, lint, types, import contracts, known vulnerabilities where reachable"
	@echo "make bench   every claim measured again; writes benchmarks/results.json and results/scorecard.md"
	@echo "make reliability  faults, attacks, slow inputs and 3,000 turns; writes benchmarks/results/reliability.md"
	@echo "make fuzz    spoilt bytes at every door that reads something, guided where atheris is installed; commands under strace (SECONDS=600)"
	@echo "make soak    10,000 turns with a failing provider and random kills, an hour at most"
	@echo "make format  rewrite the sources in the house format"
	@echo "make golden  rewrite the golden files; review the diff"
	@echo "make docs    build the documentation as a static site into build/site, links checked"
	@echo "make coverage  the everyday tests with branch coverage"
	@echo "make release build, check and tag the version in pyproject.toml; nothing is uploaded"
	@echo "make clean   remove what make created"

$(BASE): pyproject.toml constraints.txt # what users get: the package and its five dependencies
	@echo "Creating $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt 'pip>=25.1' --editable .
	@touch $(BASE)

$(READY): $(BASE) # every extra, and what tests and checks need
	@echo "Installing the extras and the tools for tests: about 600 MB …"
	$(PIP) install --constraint constraints.txt --group dev --group adapters --editable '.[all]'
	@touch $(READY)

demo: $(BASE)
	@$(BIN)/longhold demo

test: $(READY)
	$(PYTEST) -m "not slow"

test-all: $(READY)
	LONGHOLD_TEST_EXAMPLES=120 $(PYTEST)
	LONGHOLD_TEST_STORE=postgres $(PYTEST) $(ON_A_DATABASE:%=tests/%.py)

test-random: $(READY)
	$(PIP) install --quiet --no-deps --target build/randomly 'pytest-randomly>=4'
	PYTHONPATH=$(CURDIR)/build/randomly $(PYTEST)

oldest: # sessions and adapters with the oldest releases that the extras allow
	.ci/oldest

test-postgres: $(READY)
	LONGHOLD_TEST_STORE=postgres $(PYTEST) tests/session tests/e2e

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy tests/session/typed_program.py
	MYPYPATH=src $(MYPY_ON) darwin --cache-dir .mypy_cache/darwin -p longhold
	MYPYPATH=src $(MYPY_ON) win32 --cache-dir .mypy_cache/win32 $(ON_WINDOWS)
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
	$(BIN)/python benchmarks/reliability.py --page benchmarks/results/reliability.md

fuzz: $(READY)
	$(BIN)/python benchmarks/fuzz.py --runs 200000
	$(BIN)/python benchmarks/shell_worlds.py --seconds $(SECONDS)

soak: $(READY)
	$(BIN)/python benchmarks/soak.py --turns 10000 --kills 60 --minutes 60

golden: $(READY)
	LONGHOLD_REWRITE_GOLDEN=1 $(BIN)/python -m pytest tests/golden tests/test_docs.py

coverage: $(READY)
	$(PIP) install --quiet --group coverage
	$(BIN)/coverage run -m pytest -m "not slow"
	$(BIN)/coverage combine --quiet && $(BIN)/coverage report | tail -30

docs: $(BASE)
	$(PIP) install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/site

release: $(READY)
	.ci/release $(BIN)/python

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis
