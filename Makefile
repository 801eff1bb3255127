# Python 3.11 or newer and make are all that has to be there; everything else is installed into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all lint wheel picture clean

demo: $(VENV)/.installed  ## a whole run, offline: judgments, metrics, report
	$(BIN)/judge run examples/compare_systems/run.yaml --out runs/demo

test: $(VENV)/.installed-dev  ## all tests that need no browser, torch, Ray or Redis
	$(BIN)/python -m pytest -n auto -m "not browser and not torch and not ray and not redis"

test-all: $(VENV)/.installed-all  ## every test; installs what they need
	command -v chromium >/dev/null && command -v redis-server >/dev/null \
	  || (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium redis-server)
	command -v npm >/dev/null && npm install --silent --no-audit --no-fund --prefix build/aimock @copilotkit/aimock@1.43 \
	  || echo "no npm, or no registry: tests/engines/test_aimock.py is skipped"
	$(BIN)/python -m pytest -n auto --cov --cov-report=term

lint: $(VENV)/.installed-dev  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

wheel: $(VENV)/.installed-dev  ## build the wheel and try it in a fresh environment
	rm -rf dist build/wheel
	$(BIN)/python -m build --wheel --outdir dist
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/pip install -q -c constraints.txt dist/*.whl
	cd build && wheel/bin/judge run ../examples/compare_systems/run.yaml --out demo --cache cache --quiet
	cd build && wheel/bin/judge criteria list
	cd build && wheel/bin/judge score ../examples/qags_en/run.yaml --out scored --quiet

picture: demo  ## docs/report.png, the picture in the README
	chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
	  --disable-component-update --disable-sync --user-data-dir=$$(mktemp -d) --hide-scrollbars \
	  --window-size=1240,1120 --screenshot=docs/report.png file://$(CURDIR)/runs/demo/report.html

clean:
	rm -rf $(VENV) build dist runs .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/pip install -q -c constraints.txt -e '.[dev,cjk]'
	touch $@

# torch by itself and first, so that nothing pulls a larger build of it; the tokenizers that no extra brings; and a real
# server of chat and typed questions for the providers' tests: llama.cpp, and what makes a tiny model for it.
$(VENV)/.installed-all: $(VENV)/.installed-dev
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e '.[dev,all]' sudachipy sudachidict_core kiwipiepy xllamacpp gguf
	touch $@
