# Requires Python 3.11 or newer and make. Everything else is installed into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Where this is set, every worker and every process that a test starts compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE
# The tests write to memory where there are 4 GB: SQLite waits 50 ms for a disk each time a cache is opened.
MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 {print $$6}')
# Each worker starts with neighbouring tests, which share servers and clusters, and then takes over waiting ones. There
# is a worker for each core: more threads of torch or BLAS would only wait for each other, which keeps the cores busy.
PYTEST := OMP_NUM_THREADS=1 $(if $(MEMORY),TMPDIR=$(MEMORY)) $(BIN)/python -m pytest --dist worksteal
# nproc would count only the threads that OMP_NUM_THREADS allows.
CORES := $(shell env -u OMP_NUM_THREADS nproc 2>/dev/null || echo 2)
# Tests with browsers, clusters and killed programs wait a third of their time.
MORE_WORKERS := $(shell expr $(CORES) + $(CORES) / 2)

# The headless shell draws the same pages with a third of the processor time of the whole browser.
CHROMIUM := $(firstword $(shell command -v chromium-headless-shell) $(shell command -v chromium))

# Python compiles a module when it is first imported: most modules of these packages never are.
PIP := $(BIN)/pip install -q --no-compile -c .ci/constraints.txt

.PHONY: demo examples test test-all test-openai2 setup-all chromium aimock coverage lint wheel picture clean

demo: $(VENV)/.installed  ## a complete run offline: judgments, metrics, report
	$(BIN)/judge run examples/compare_systems/run.yaml --out runs/demo --overwrite

examples: $(VENV)/.installed  ## all examples that need no extra, into runs/examples
	set -e; for name in compare_systems claims conversations summaries_ja summaries_ko summaries_zh custom_criterion human_calibration prompt_change qags_en qags_ja; do \
	  $(BIN)/judge run examples/$$name/run.yaml --out runs/examples/$$name --overwrite --quiet; done
	$(BIN)/python examples/quickstart/quickstart.py
	$(BIN)/judge validate runs/examples/human_calibration --level all-texts
	$(BIN)/judge rank examples/pairwise/run.yaml --out runs/examples/pairwise --overwrite --quiet
	$(BIN)/judge test examples/regression/grounded.judge.yaml --out runs/examples/regression
	$(BIN)/judge test examples/prompt_change/complete.judge.yaml
	@echo "Reports: runs/examples/*/report.html; see examples/README.md"

test: $(VENV)/.installed-dev  ## all tests that need no browser, torch or Ray, and no seconds each
	$(PYTEST) -n auto -m "not browser and not torch and not ray and not slow"

test-all: test setup-all  ## every test; installs what they need
	$(PYTEST) -n $(MORE_WORKERS) -m "browser or torch or ray or slow or extra" \
	  $$(grep -lrE --include='*.py' 'mark\.(browser|torch|ray|slow|extra)\b' tests)

setup-all: $(VENV)/.installed-all chromium aimock

chromium:
	test -n "$(CHROMIUM)" || (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium-headless-shell) \
	  || apt-get install -y -qq --no-install-recommends chromium

aimock:
	command -v npm >/dev/null && npm install --silent --no-audit --no-fund --prefix build/aimock @copilotkit/aimock@1.43 \
	  || echo "no npm, or no registry: tests/execution/engines/test_aimock.py is skipped"

# The oldest supported SDK, which uses httpx instead of httpx2. Everything else comes from the environment.
test-openai2: $(VENV)/.installed-dev  ## tests of providers and engines with openai 2
	test -e build/openai2/openai || $(BIN)/pip install -q --no-deps --target build/openai2 \
	  openai==2.0.0 httpx==0.28.1 httpcore==1.0.9 httpx-aiohttp==0.2.0 distro==1.9.0 sniffio==1.3.1
	PYTHONPATH=$(CURDIR)/build/openai2 $(PYTEST) -n auto -m "not torch and not slow" tests/providers \
	  tests/security/test_keys.py tests/security/test_replies.py tests/execution/engines/test_batch_api.py

coverage: $(VENV)/.installed-all  ## every test with line coverage; takes twice the time
	$(PYTEST) -n auto --cov --cov-report=term

lint: $(VENV)/.installed-dev  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tries the wheel with each of these Pythons that is installed, also by pyenv, and names the missing ones.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
wheel: export PYENV_VERSION := 3.11:3.12:3.13:3.14
wheel: $(VENV)/.installed-dev  ## build wheel and sdist, check them, and try the wheel in fresh environments
	rm -rf dist build/wheel-*
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	set -e; for python in $(PYTHONS); do \
	  $$python --version 2>/dev/null || { echo "$$python is not installed: wheel not tried"; continue; }; \
	  $$python -m venv build/wheel-$$python; \
	  build/wheel-$$python/bin/pip install -q --no-compile -c .ci/constraints.txt dist/*.whl; \
	  (cd build && PATH="$$PWD/wheel-$$python/bin:$$PATH" && rm -rf starter demo scored \
	    && judge run ../examples/compare_systems/run.yaml --out demo --cache cache --quiet \
	    && judge run ../examples/qags_en/run.yaml --out scored --quiet \
	    && judge init starter && judge test starter --quiet && judge criteria list --json >starter/criteria.json); \
	done

picture: demo  ## docs/report.png, the screenshot in the README
	$(CHROMIUM) --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
	  --disable-component-update --disable-sync --user-data-dir=$$(mktemp -d) --hide-scrollbars \
	  --window-size=1280,900 --screenshot=docs/report.png file://$(CURDIR)/runs/demo/report.html

clean:
	rm -rf $(VENV) build dist runs .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml .ci/constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	touch $@

# This holds all that the other has: each call of pip builds the project again.
$(VENV)/.installed-dev: pyproject.toml .ci/constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[dev,cjk]'
	touch $(VENV)/.installed $@

# torch comes first, so that no other package installs a larger build. Also tokenizers that no extra installs,
# llama.cpp with the tools to make a tiny model: a real server for the tests of the providers, and tools that results
# are logged to.
$(VENV)/.installed-all: $(VENV)/.installed-dev
	$(PIP) torch
	$(PIP) -e '.[dev,all]' sudachipy sudachidict_core kiwipiepy xllamacpp gguf \
	  mlflow-skinny wandb
	touch $@
