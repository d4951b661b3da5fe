# Two commands: `make demo` and `make test`. They need Python 3.11+ and make, nothing else.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test test-browser test-scale invariance lint types layers check docs bench clean

demo: $(VENV)/.installed
	$(BIN)/podium demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

# Other row orders, names, kernels and batches must not change an answer: the checks of `make test` on many more samples
invariance: $(VENV)/.installed-test
	$(BIN)/python -m podium.testing.invariance $(INVARIANCE_ARGS)

# Ray and Spark (which needs Java) have an environment of their own; `make test` skips what needs them
test-scale: .venv-scale/.installed
	.venv-scale/bin/python -m pytest tests/scale $(PYTEST_ARGS)

# The studio in a real browser: Debian's Chromium, driven by Playwright
test-browser: .venv-browser/.installed
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || test -n "$(PODIUM_CHROMIUM)" \
	  || { command -v apt-get >/dev/null && apt-get install -y --no-install-recommends chromium; } \
	  || { echo "these tests need Chromium: install it, or set PODIUM_CHROMIUM to its path"; exit 1; }
	.venv-browser/bin/python -m pytest tests/browser $(PYTEST_ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

layers: $(VENV)/.installed-dev
	$(BIN)/lint-imports

check: lint types layers test

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -q -E -W --keep-going -b html docs build/docs
	@echo "open build/docs/index.html"

bench: .venv-bench/.installed
	.venv-bench/bin/python benchmarks/run.py $(BENCH_ARGS)

clean:
	rm -rf $(VENV) .venv-bench .venv-browser .venv-scale build dist .mypy_cache .ruff_cache .pytest_cache

# The environment is rebuilt when the declared dependencies change, and at no other time.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Podium needs Python 3.11 or later; set PYTHON=python3.x"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]' -e papers
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,dev]' -e papers
	@touch $@ $(VENV)/.installed-test $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]' -e papers
	@touch $@ $(VENV)/.installed

.venv-bench/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench]' -e papers
	@touch $@

.venv-scale/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-scale
	.venv-scale/bin/python -m pip install --quiet --disable-pip-version-check -e '.[ray,spark]' pytest hypothesis
	@touch $@

.venv-browser/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-browser
	.venv-browser/bin/python -m pip install --quiet --disable-pip-version-check -e '.[browser]' -e papers
	@touch $@
